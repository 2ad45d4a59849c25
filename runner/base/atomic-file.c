#include "config.h"
#include "runner/base/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE (1 << 20)

struct _RnAtomicFile
{
  char *path;
  char *temporary; /* NULL once it is renamed */
  int fd;
  int failed; /* errno of the first failure, 0 for none */
  gsize used; /* of buffer */
  char buffer[BUFFER_SIZE];
};

static RnAtomicFileFault fault;
static gpointer fault_data;

void
rn_atomic_file_set_fault (RnAtomicFileFault func, gpointer data)
{
  fault = func;
  fault_data = data;
}

/* 0, or the errno that a test wants the step to fail with. */
static int
injected (RnAtomicFileStep step)
{
  return fault ? fault (step, fault_data) : 0;
}

static gboolean
fail (RnAtomicFile *file, int code, const char *what, GError **error)
{
  if (!file->failed)
    file->failed = code;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: cannot %s: %s", file->path, what,
               g_strerror (code));
  return FALSE;
}

/* Is @fd still what @path names? */
static gboolean
is_same_file (int fd, const char *path)
{
  struct stat a, b;
  return fstat (fd, &a) == 0 && lstat (path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static gboolean
is_regular (int fd)
{
  struct stat info;
  return fstat (fd, &info) == 0 && S_ISREG (info.st_mode);
}

/*
 * Opens @path, empty and locked; -1 with errno, EBUSY when another process has it. The name is fixed, so what
 * a killed process left behind is used again instead of piling up. A pipe of this name is not waited for.
 */
static int
open_locked (const char *path)
{
  for (;;)
    {
      int fd = g_open (path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
      if (fd < 0)
        return -1;

      int code = 0;
      if (!is_regular (fd))
        code = EINVAL;
      else if (flock (fd, LOCK_EX | LOCK_NB) != 0)
        code = errno == EWOULDBLOCK ? EBUSY : errno;
      else if (is_same_file (fd, path)) /* else the one before us was just renamed: start again */
        {
          if (ftruncate (fd, 0) == 0)
            return fd;
          code = errno;
        }
      close (fd);
      if (code != 0)
        {
          errno = code;
          return -1;
        }
    }
}

/*
 * The rename would destroy a device or a pipe (`--out /dev/null` as root), and fail on a folder after all the
 * work. Links in /dev may lead to a regular file, and are not to be replaced either.
 */
static gboolean
check_target (const char *path, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (path);
  struct stat info;
  gboolean is_there = stat (path, &info) == 0;

  if ((!is_there || S_ISREG (info.st_mode)) && strcmp (folder, "/dev") != 0)
    return TRUE;
  g_set_error (error, G_FILE_ERROR,
               is_there && S_ISDIR (info.st_mode) ? G_FILE_ERROR_ISDIR : G_FILE_ERROR_INVAL,
               "%s: cannot write: %s", path,
               is_there && S_ISDIR (info.st_mode) ? g_strerror (EISDIR) : "not a regular file");
  return FALSE;
}

RnAtomicFile *
rn_atomic_file_new (const char *path, GError **error)
{
  g_autoptr (RnAtomicFile) file = g_try_malloc (sizeof *file);

  if (!file)
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOMEM, "%s: %s", path, g_strerror (ENOMEM));
      return NULL;
    }
  file->path = g_strdup (path);
  file->temporary = g_strconcat (path, ".tmp", NULL);
  file->fd = -1;
  file->failed = 0;
  file->used = 0;

  if (!check_target (path, error))
    {
      g_clear_pointer (&file->temporary, g_free);
      return NULL;
    }
  int code = injected (RN_ATOMIC_FILE_OPEN);
  if (code == 0 && (file->fd = open_locked (file->temporary)) < 0)
    code = errno;
  if (code != 0)
    {
      g_autofree char *temporary = g_steal_pointer (&file->temporary); /* not ours to remove */
      struct stat info;
      if (lstat (temporary, &info) == 0 && !S_ISREG (info.st_mode))
        g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                     "%s: cannot write: %s is in the way, which is not a regular file; remove it", path,
                     temporary);
      else
        fail (file, code, "create a temporary file beside it", error);
      return NULL;
    }
  return g_steal_pointer (&file);
}

static gboolean
write_all (RnAtomicFile *file, const char *data, gsize size, GError **error)
{
  int code = size > 0 ? injected (RN_ATOMIC_FILE_WRITE) : 0;

  while (code == 0 && size > 0)
    {
      gssize n = write (file->fd, data, size);
      if (n < 0 && errno != EINTR)
        code = errno;
      if (n > 0)
        {
          data += n;
          size -= (gsize) n;
        }
    }
  return code == 0 || fail (file, code, "write", error);
}

static gboolean
flush (RnAtomicFile *file, GError **error)
{
  gsize used = file->used;

  file->used = 0;
  return write_all (file, file->buffer, used, error);
}

gboolean
rn_atomic_file_write (RnAtomicFile *file, const void *data, gsize size, GError **error)
{
  g_return_val_if_fail (file->fd >= 0, FALSE);

  if (file->failed)
    return fail (file, file->failed, "write", error);
  if (size > BUFFER_SIZE - file->used && !flush (file, error))
    return FALSE;
  if (size >= BUFFER_SIZE)
    return write_all (file, data, size, error);
  if (size > 0)
    memcpy (file->buffer + file->used, data, size);
  file->used += size;
  return TRUE;
}

/* Makes the new name itself survive a power cut. */
static int
sync_folder (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  int code = injected (RN_ATOMIC_FILE_FSYNC_FOLDER);

  if (code != 0)
    return code;
  int fd = g_open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0)
    return errno;
  if (fsync (fd) != 0 && errno != EINVAL) /* EINVAL: a file system whose folders cannot be synced */
    code = errno;
  close (fd);
  return code;
}

gboolean
rn_atomic_file_commit (RnAtomicFile *file, GError **error)
{
  g_return_val_if_fail (file->fd >= 0, FALSE);

  if (file->failed)
    return fail (file, file->failed, "write", error);
  if (!flush (file, error))
    return FALSE;

  int code = injected (RN_ATOMIC_FILE_FSYNC);
  if (code == 0 && fsync (file->fd) != 0)
    code = errno;
  if (code != 0)
    return fail (file, code, "write it to the disk", error);

  code = injected (RN_ATOMIC_FILE_RENAME);
  if (code == 0 && g_rename (file->temporary, file->path) != 0)
    code = errno;
  if (code != 0)
    return fail (file, code, "put it in place", error);
  g_clear_pointer (&file->temporary, g_free);
  close (file->fd); /* only now: it holds the lock */
  file->fd = -1;

  code = sync_folder (file->path);
  return code == 0 || fail (file, code, "sync its folder", error);
}

void
rn_atomic_file_free (RnAtomicFile *file)
{
  if (!file)
    return;
  if (file->temporary)
    g_unlink (file->temporary);
  if (file->fd >= 0)
    close (file->fd);
  g_free (file->temporary);
  g_free (file->path);
  g_free (file);
}

gboolean
rn_atomic_file_save (const char *path, const void *data, gsize size, GError **error)
{
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);

  return file && rn_atomic_file_write (file, data, size, error) && rn_atomic_file_commit (file, error);
}
