// The rows of a run on a disk that fails.

#include <xgrad/lm/program/run_dir.hpp>
#include "helpers/catch.hpp"
#include "helpers/faults.hpp"
#include "helpers/temporary_folder.hpp"

TEST_CASE("rows that do not reach the disk are an error", "[saves]") {
  if (!FailingCall::possible())
    return;
  const TemporaryFolder folder;
  program::JsonLines rows(folder / "rows.jsonl", 0);
  rows.add(R"({"step":0})");
  rows.sync();
  const FailingCall broken(0);
  CHECK_THROWS_WITH(rows.sync(), ContainsSubstring("rows.jsonl: writing failed: "));
}
