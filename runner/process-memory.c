#include "config.h"

#include "runner/process-memory.h"

#include <runner/engine.h>
#include "runner/base/size.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The first number in a small file; after @key if that is not NULL. */
static gboolean
read_number (const char *path, const char *key, guint64 *value)
{
  g_autofree char *text = NULL;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  const char *start = key != NULL ? strstr (text, key) : text;
  if (start == NULL)
    return FALSE;
  start += key != NULL ? strlen (key) : 0;
  char *end;
  *value = g_ascii_strtoull (start, &end, 10);
  return end != start;
}

void
rn_process_memory (guint64 *current, guint64 *peak)
{
  struct rusage usage;
  guint64 pages;
  g_autofree char *text = NULL;

  *current = *peak = 0;
  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    {
      const char *resident = strchr (text, ' '); /* the second number */
      pages = resident != NULL ? g_ascii_strtoull (resident, NULL, 10) : 0;
      *current = pages * (guint64) sysconf (_SC_PAGESIZE);
    }
  if (getrusage (RUSAGE_SELF, &usage) == 0)
    *peak = (guint64) usage.ru_maxrss * 1024;
  *peak = MAX (*peak, *current); /* the kernel writes the peak down late */
}

guint64
rn_available_memory (void)
{
  guint64 available = G_MAXUINT64, limit, used;
  const char *text = g_getenv ("RN_FREE_MEMORY");

  if (text != NULL && rn_size_parse (text, &available, NULL))
    return available;

  if (read_number ("/proc/meminfo", "MemAvailable:", &available))
    available *= 1024;
  /* "max" is no number: no limit. */
  if (read_number ("/sys/fs/cgroup/memory.max", NULL, &limit)
      && read_number ("/sys/fs/cgroup/memory.current", NULL, &used))
    available = MIN (available, limit > used ? limit - used : 0);
  return available;
}

void
rn_system_memory (RnSystemMemory *memory)
{
  static const char *const keys[] = { "MemTotal:", "MemAvailable:", "SwapTotal:", "SwapFree:" };
  guint64 *values[] = { &memory->total, &memory->available, &memory->swap_total, &memory->swap_free };

  *memory = (RnSystemMemory){ 0 };
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    if (read_number ("/proc/meminfo", keys[i], values[i]))
      *values[i] *= 1024;
}
