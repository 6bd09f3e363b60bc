// Plays the agent for the recorder's tests: makes a trace file as TRACER_OUT and TRACER_SESSION ask, and writes to it
// as slowly as the test wants. argv: what to do, in order.
//   here          its file is to say in which namespace process ids count
//   file          make the file (%p and %e are expanded)
//   watched       until the recorder holds a descriptor of this process
//   await BYTES   until the recorder has prepared that many bytes ahead
//   take BYTES    a chunk, filled to half with non-zero words; left open
//   close         the last chunk, as a clean end does
//   exec ARGS…    this program again, in the same process, as another image
//   read PATH     until it has an end
//   touch PAGES   that were not there before, one by one
//   kill          oneself
//   exit STATUS
#include "trace_layout.h"
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct trace_file_header *header;
static int file = -1;
static uint64_t chunk_offset;
static uint32_t chunk_bytes;
static uint64_t namespace;

/// As the agent has it (Process.bootID): the first sixteen digits.
static uint64_t boot_id(void) {
    char text[64] = "", digits[17] = "";
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!id || !fgets(text, sizeof text, id)) return 0;
    fclose(id);
    for (char *from = text, *to = digits; *from && to < digits + 16; from++)
        if (*from != '-') *to++ = *from;
    return strtoull(digits, 0, 16);
}

static void fail(const char *what) {
    perror(what);
    exit(99);
}

static void make_file(const char *program) {
    const char *template = getenv("TRACER_OUT"), *session = getenv("TRACER_SESSION");
    if (!template || !session) fail("no TRACER_ variables");
    char path[4096], *to = path;
    for (const char *from = template; *from; from++)
        if (from[0] == '%' && from[1] == 'p') to += sprintf(to, "%d", getpid()), from++;
        else if (from[0] == '%' && from[1] == 'e') to += sprintf(to, "%s", program), from++;
        else *to++ = *from;
    *to = 0;
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || ftruncate(file, TRACE_HEADER_BYTES)) fail(path);
    header = mmap(0, TRACE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (header == MAP_FAILED) fail("mmap");
    header->version = TRACE_VERSION;
    header->header_bytes = TRACE_HEADER_BYTES;
    header->pid = getpid();
    header->parent_pid = getppid();
    header->session = strtoull(session, 0, 16);
    header->pid_namespace = namespace;
    header->boot = boot_id();
    header->next_offset = TRACE_HEADER_BYTES;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    header->first.monotonic_ns = header->last.monotonic_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, "TRACER\x1a\n", 8);
}

static void find_namespace(void) {
    struct stat info;
    if (stat("/proc/self/ns/pid", &info)) fail("namespace");
    namespace = info.st_ino;
}

// proc_pid_fdinfo(5): that of a process has a line "Pid:" with its number.
static int is_watched_by(const char *recorder) {
    char folder[64], path[400], line[256], wanted[32];
    snprintf(folder, sizeof folder, "/proc/%d/fdinfo", atoi(recorder));
    snprintf(wanted, sizeof wanted, "Pid:\t%d\n", getpid());
    DIR *all = opendir(folder);
    if (!all) fail(folder);
    int found = 0, any = 0;
    for (struct dirent *entry; !found && (entry = readdir(all));) {
        any |= entry->d_name[0] != '.';
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *one = fopen(path, "r");
        while (one && !found && fgets(line, sizeof line, one)) found = !strcmp(line, wanted);
        if (one) fclose(one);
    }
    closedir(all);
    if (!any) fail("the recorder has ended");
    return found;
}

static void await_prepared(uint64_t bytes) {
    while (__atomic_load_n(&header->prepared_offset, __ATOMIC_ACQUIRE) < header->next_offset + bytes) sched_yield();
}

static void take(uint32_t bytes) {
    chunk_bytes = bytes;
    chunk_offset = __atomic_fetch_add(&header->next_offset, bytes, __ATOMIC_RELAXED);
    if (posix_fallocate(file, chunk_offset, bytes)) fail("fallocate");
    char *chunk = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, chunk_offset);
    if (chunk == MAP_FAILED) fail("chunk");
    memset(chunk + sizeof(struct trace_chunk_header), 0x77, bytes / 2 - sizeof(struct trace_chunk_header));
    struct trace_chunk_header *start = (void *)chunk;
    start->kind = TRACE_CHUNK_EVENTS;
    start->byte_count = bytes;
    start->body_offset = sizeof *start;
    start->magic = TRACE_CHUNK_MAGIC;
    munmap(chunk, bytes);
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const char *program = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "here")) find_namespace();
        else if (!strcmp(argv[i], "file")) make_file(program);
        else if (!strcmp(argv[i], "watched"))
            while (!is_watched_by(strchr(getenv("TRACER_SESSION"), '-') + 1)) sched_yield();
        else if (!strcmp(argv[i], "exit")) return atoi(argv[++i]);
        else if (!strcmp(argv[i], "await")) await_prepared(strtoull(argv[++i], 0, 10));
        else if (!strcmp(argv[i], "take")) take(strtoul(argv[++i], 0, 10));
        else if (!strcmp(argv[i], "close")) {
            uint64_t used = chunk_bytes / 2;
            if (pwrite(file, &used, 8, chunk_offset + offsetof(struct trace_chunk_header, used_bytes)) != 8) fail("close");
            header->state = TRACE_FINISHED;
        } else if (!strcmp(argv[i], "exec")) {
            char self[4096] = {0};
            if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail("self");
            argv[i] = "image2";
            execv(self, argv + i);
            fail("exec");
        } else if (!strcmp(argv[i], "read")) {
            int source = open(argv[++i], O_RDONLY);
            for (char byte; read(source, &byte, 1) > 0;);
        } else if (!strcmp(argv[i], "touch")) {
            size_t pages = (size_t)atol(argv[++i]), size = (size_t)sysconf(_SC_PAGESIZE);
            volatile char *buffer = mmap(0, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (buffer == MAP_FAILED) fail("touch");
            madvise((void *)buffer, pages * size, MADV_NOHUGEPAGE); // fails harmlessly on a kernel without huge pages
            for (size_t n = 0; n < pages; n++) buffer[n * size] = 1;
        } else if (!strcmp(argv[i], "kill")) raise(SIGKILL);
        else fail(argv[i]);
    }
    return 0;
}
