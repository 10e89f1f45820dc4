#pragma once
// The version and commit of this build.

namespace char_transformer {

/// The project's version, "0.1.0".
extern const char* const build_version;
/// The commit that was built, "13afac4" or "13afac4-dirty"; empty outside git.
extern const char* const build_commit;

}  // namespace char_transformer
