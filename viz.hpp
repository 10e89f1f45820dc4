#pragma once
// Pages for a browser and pictures in one header: attention, the graph of a backward pass, charts.

#include "viz/attention.hpp"
#include "viz/chart.hpp"
#include "viz/graph.hpp"
#include "viz/page.hpp"
