# What Doxygen reads in place of a file.
# The // comment that a header begins with describes the file; what is indented in it is code.
1s|^#pragma once$|/// @file|
2,/^$/{
  s|^//   |//      |
  s|^//|///|
}
# The README's links to files that have no page of their own lead back to the project.
s#\]\(([a-z0-9_/]+\.[hc]pp|examples/[a-z_]+/README\.md|scripts/[a-z]+)\)#](../../../\1)#g
s#/README\.md\)#)#g
# Doxygen makes no anchors of a page's own headings.
s#\[([^]]*)\]\(\#[a-z-]+\)#\1#g
# In comments, a backslash and <class T> are themselves.
\|^ *///|{
  s|\\([a-z][,)])|\\\\\1|g
  s|\[\]<class|[]\\<class|g
}
# Explicit instantiations are documented at their templates.
/^extern template /,/;/d
# The members that scripts/members has made.
\|^#include "members_declared.inc"|r autograd/members_declared.inc
\|^#include "discrete_members_declared.inc"|r autograd/discrete_members_declared.inc
