#pragma once
// One run at a time in a folder.

#include <string>

namespace char_transformer {

/// Holds a lock on the file `lock` in a folder, which names the process.  It ends with the process,
/// however that ends.
class FolderLock {
 public:
  /// Throws FileError if another process holds it, or the folder cannot be written.  Where the file
  /// system has no locks, a note on standard error says so, and all goes on without.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Removes the file.
  ~FolderLock();

  /// Throws FileError if the file is gone or is another's.
  void check() const;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace char_transformer
