/* Shifts the wall clock of one process by the seconds that stand in the file CHAOS_CLOCK_FILE.
   The monotonic clock stays: LD_PRELOAD it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t none;
static volatile int64_t *shift_s = &none;
static int (*real_gettime)(clockid_t, struct timespec *);

static void find(void)
{
    if (real_gettime == NULL)
        *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("CHAOS_CLOCK_FILE");
    find();
    if (name == NULL)
        return;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED)
        shift_s = found;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    find();
    int result = real_gettime(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift_s;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (result != NULL)
        *result = found.tv_sec;
    return found.tv_sec;
}
