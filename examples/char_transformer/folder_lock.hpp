#pragma once
// One run at a time in a folder.

#include <optional>
#include <string>

namespace char_transformer {

/// Holds a folder open, and a lock on the file `lock` in it, which names the process.  It ends with
/// the process, however that ends.
class FolderLock {
 public:
  /// Throws FileError if another process holds it, or the folder cannot be written.  Where the file
  /// system has no locks, a note on standard error says so, and all goes on without.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Removes the file.
  ~FolderLock();

  /// Where the folder is now, though it was moved; none if it was removed.
  std::optional<std::string> place();
  /// A path of the folder that is right wherever that is, where the system has one.
  std::string inside() const;
  /// Whether the file is there, in the folder's place.
  bool holds() const;

 private:
  void take();
  void check_is_lock() const;
  void close() const;
  std::string path() const { return folder_ + "/lock"; }

  std::string folder_;
  int handle_ = -1;      ///< the folder
  int descriptor_ = -1;  ///< the file
};

}  // namespace char_transformer
