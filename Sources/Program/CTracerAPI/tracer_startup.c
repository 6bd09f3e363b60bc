// Runs start-up items (tracer.h). A program compiles this file into itself, as C or as C++; it needs libc alone.
//
// - The calling thread runs its items one after the other, in an order that never varies: an item after those that it names, and
//   if several may come next the one that is declared first. Items of the pool are begun in that order, too. Order of declaration
//   is by module as loaded (the program, then its libraries), then by name of file and by line.
// - Items that come after one another in a circle, and those after them, run as they are declared. A name that no item has, or an
//   item of a stage that has not been run, is not waited for. Each of these is a line on stderr.
// - Several items of one name all run, and whoever names them comes after all of them.
// - From within an item this runs another stage there and then; for the stage of that item it returns at once.
// - If several threads call it, each item is run by one of them, and all return when the items of their stage have ended: an item
//   must not wait for another thread's call with its own stage.
// - An item throws nothing: in C++ that ends the program.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tracer.h"
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDLE, TAKEN, ENDED };

/// An item as one run sees it.
struct task {
    struct tracer_startup_item *item;
    /// Number of the module that it is in.
    size_t module;
    /// The item's state when the run began.
    unsigned state;
    /// This run will run it; its position in the order is known.
    int is_own, is_ordered;
    /// Items that it comes after, and how many of them have no position in the order yet.
    struct edge *needs;
    size_t missing;
    /// Items that come after it.
    struct edge *followers;
};
struct edge {
    struct task *before, *after;
    struct edge *next_need, *next_follower;
};

/// One call of tracer_run_startup.
struct run {
    int stage;
    /// The run from whose item this one was called.
    const struct run *outer;
    /// Items of all stages, in order of declaration.
    struct task *tasks;
    size_t count, capacity, modules;
    /// The same by name.
    struct task **named;
    struct edge *edges;
    /// The items that it runs, in order; how many, and how many of these are of the pool.
    struct task **order;
    size_t length, pool_length;
    /// The next one that the pool looks at.
    size_t next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t item_ended = PTHREAD_COND_INITIALIZER;
static struct tracer_startup_item *added;
static __thread const struct run *current;

static void *resized(void *old, size_t count, size_t size) {
    void *memory = realloc(old, (count + 1) * size);
    if (!memory) {
        fprintf(stderr, "tracer_run_startup: no memory for the items\n");
        abort();
    }
    return memory;
}

// Names stand in one text, with ", " between them.
static size_t length(const char *name) { return strcspn(name, ","); }
static const char *next(const char *name) { return name + length(name) + strspn(name + length(name), ", "); }
static int compare(const char *a, const char *b) {
    size_t first = length(a), second = length(b);
    int order = memcmp(a, b, first < second ? first : second);
    return order ? order : (first > second) - (first < second);
}

static int is_of_pool(const struct task *task) { return (task->item->flags & TRACER_STARTUP_POOL) != 0; }

static void add(struct run *run, struct tracer_startup_item *item) {
    if (run->count == run->capacity) {
        run->capacity = run->capacity * 2 + 64;
        run->tasks = (struct task *)resized(run->tasks, run->capacity, sizeof *run->tasks);
    }
    struct task task = {item, run->modules, 0, 0, 0, 0, 0, 0};
    run->tasks[run->count++] = task;
}

/// The items of a loaded module. Each has a note, and all of them say the same: where the section is.
static int gather(struct dl_phdr_info *module, size_t size, void *context) {
    struct run *run = (struct run *)context;
    const char *known = NULL;
    (void)size;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE) continue;
        const char *at = (const char *)(module->dlpi_addr + segment->p_vaddr), *end = at + segment->p_memsz;
        while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const char *name = at + sizeof *note, *bounds = name + ((note->n_namesz + 3) & ~3u);
            at = note->n_namesz ? bounds + ((note->n_descsz + 3) & ~3u) : at + 4; // mold has a gap in front of an aligned one
            if (note->n_type != 2 || note->n_namesz != 7 || note->n_descsz != 8 || memcmp(name, "tracer", 7)) continue;
            const char *item = bounds + *(const int32_t *)bounds, *last = bounds + 4 + *(const int32_t *)(bounds + 4);
            if (item == known) continue;
            known = item;
            for (; item < last; item += sizeof(struct tracer_startup_item)) add(run, (struct tracer_startup_item *)item);
        }
    }
    run->modules++;
    return 0;
}

static int by_declaration(const void *a, const void *b) {
    const struct task *first = (const struct task *)a, *second = (const struct task *)b;
    if (first->module != second->module) return first->module < second->module ? -1 : 1;
    int file = strcmp(first->item->file, second->item->file);
    if (file) return file;
    if (first->item->line != second->item->line) return first->item->line < second->item->line ? -1 : 1;
    return (first->item > second->item) - (first->item < second->item);
}
static int by_name(const void *a, const void *b) {
    const struct task *first = *(struct task *const *)a, *second = *(struct task *const *)b;
    int order = compare(first->item->names, second->item->names);
    return order ? order : (first > second) - (first < second);
}

/// Finds every item there is, and takes those of the stage that nobody has taken.
static void collect(struct run *run) {
    dl_iterate_phdr(gather, run);
    pthread_mutex_lock(&lock);
    for (struct tracer_startup_item *item = added; item; item = item->next) add(run, item);
    qsort(run->tasks, run->count, sizeof *run->tasks, by_declaration);
    run->named = (struct task **)resized(NULL, run->count, sizeof *run->named);
    run->order = (struct task **)resized(NULL, run->count, sizeof *run->order);
    for (size_t n = 0; n < run->count; n++) {
        struct task *task = run->named[n] = &run->tasks[n];
        task->state = task->item->state;
        task->is_own = task->state == IDLE && task->item->stage == run->stage;
        if (task->is_own) task->item->state = TAKEN;
    }
    pthread_mutex_unlock(&lock);
    qsort(run->named, run->count, sizeof *run->named, by_name);
}

static int is_around(const struct run *run, int stage) {
    while (run && run->stage != stage) run = run->outer;
    return run != NULL;
}

static void complain(const struct task *task, const char *name, const char *why) {
    fprintf(stderr, "tracer_run_startup: item \"%.*s\" of stage %d should run after \"%.*s\", %s\n", (int)length(task->item->names),
            task->item->names, task->item->stage, (int)length(name), name, why);
}

/// Connects a task with those that it comes after; first only counts them, while there are no edges.
static size_t connect(struct run *run, struct task *task, struct edge *edges) {
    size_t count = 0;
    for (const char *name = next(task->item->names); *name; name = next(name)) {
        size_t low = 0, high = run->count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (compare(run->named[middle]->item->names, name) < 0) low = middle + 1;
            else high = middle;
        }
        if (edges && (low == run->count || compare(run->named[low]->item->names, name))) complain(task, name, "but no item has that name");
        for (; low < run->count && !compare(run->named[low]->item->names, name); low++) {
            struct task *before = run->named[low];
            if (before->state == ENDED) continue;
            if (!before->is_own && (before->state == IDLE || is_around(run, before->item->stage))) {
                if (edges) complain(task, name, "whose stage has not run");
                continue;
            }
            if (edges) {
                struct edge edge = {before, task, task->needs, before->followers};
                edges[count] = edge;
                task->needs = before->followers = &edges[count];
                task->missing += (size_t)before->is_own;
            }
            count++;
        }
    }
    return count;
}

static void put(struct run *run, struct task *task) {
    task->is_ordered = 1;
    run->order[run->length++] = task;
    run->pool_length += (size_t)is_of_pool(task);
}

/// Something that a task comes after and that has no position in the order.
static struct task *obstacle(const struct task *task) {
    for (struct edge *edge = task->needs; edge; edge = edge->next_need)
        if (edge->before->is_own && !edge->before->is_ordered) return edge->before;
    return NULL;
}

/// Names a circle, its first item first. From any task that is left one comes into one.
static void complain_of_circle(const struct run *run, struct task *task) {
    for (size_t n = 0; n < run->count; n++) task = obstacle(task);
    for (struct task *other = obstacle(task); other != task; other = obstacle(other))
        if (other < task) task = other; // and once more around
    fprintf(stderr, "tracer_run_startup: items of stage %d depend on each other in a circle, and run as declared: ", run->stage);
    const struct task *first = task;
    do {
        fprintf(stderr, "%.*s after ", (int)length(task->item->names), task->item->names);
        task = obstacle(task);
    } while (task != first);
    fprintf(stderr, "%.*s\n", (int)length(first->item->names), first->item->names);
}

static void order(struct run *run) {
    size_t count = 0, own = 0;
    for (size_t n = 0; n < run->count; n++)
        if (run->tasks[n].is_own) count += connect(run, &run->tasks[n], NULL), own++;
    run->edges = (struct edge *)resized(NULL, count, sizeof *run->edges);
    count = 0;
    for (size_t n = 0; n < run->count; n++)
        if (run->tasks[n].is_own) count += connect(run, &run->tasks[n], run->edges + count);
    for (size_t n = 0; n < run->count;) {
        struct task *task = &run->tasks[n++];
        if (!task->is_own || task->is_ordered || task->missing) continue;
        put(run, task);
        for (struct edge *edge = task->followers; edge; edge = edge->next_follower) {
            size_t follower = (size_t)(edge->after - run->tasks);
            if (!--edge->after->missing && follower < n) n = follower; // declared first, and free from now on
        }
    }
    if (run->length == own) return;
    const size_t ordered = run->length;
    for (size_t n = 0; n < run->count; n++) {
        struct task *task = &run->tasks[n];
        if (!task->is_own || task->is_ordered) continue;
        if (run->length == ordered) complain_of_circle(run, task);
        put(run, task);
        task->needs = NULL;
    }
}

static void execute(const struct run *run, struct task *task) {
    pthread_mutex_lock(&lock);
    for (struct edge *edge = task->needs; edge; edge = edge->next_need)
        while (edge->before->item->state != ENDED) pthread_cond_wait(&item_ended, &lock);
    pthread_mutex_unlock(&lock);
    struct tracer_startup_item *item = task->item;
    const struct run *outer = current;
    current = run;
    char name[1024]; // the agent takes no more
    if (tracer_begin) {
        const char *after = next(item->names);
        snprintf(name, sizeof name, "startup item %.*s (stage %d%s%s)", (int)length(item->names), item->names, item->stage,
                 *after ? ", after " : "", after);
        tracer_begin(name);
    }
    item->run(item->context);
    tracer_end(name);
    current = outer;
    pthread_mutex_lock(&lock);
    item->state = ENDED;
    pthread_cond_broadcast(&item_ended);
    pthread_mutex_unlock(&lock);
}

static void *work(void *context) {
    struct run *run = (struct run *)context;
    while (1) {
        pthread_mutex_lock(&lock);
        while (run->next < run->length && !is_of_pool(run->order[run->next])) run->next++;
        size_t mine = run->next++;
        pthread_mutex_unlock(&lock);
        if (mine >= run->length) return NULL;
        execute(run, run->order[mine]);
    }
}

__attribute__((weak)) void tracer_run_startup(int stage) {
    if (is_around(current, stage)) return;
    struct run run = {stage, current, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    collect(&run);
    order(&run);
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = cpus < 1 ? 1 : (size_t)cpus, threads = 0;
    if (wanted > run.pool_length) wanted = run.pool_length;
    pthread_t *pool = (pthread_t *)resized(NULL, wanted, sizeof *pool);
    while (threads < wanted && !pthread_create(&pool[threads], NULL, work, &run)) threads++;
    for (size_t n = 0; n < run.length; n++)
        if (!threads || !is_of_pool(run.order[n])) execute(&run, run.order[n]);
    for (size_t n = 0; n < threads; n++) pthread_join(pool[n], NULL);
    pthread_mutex_lock(&lock);
    for (size_t n = 0; n < run.count; n++) // wait for items that another thread has taken
        while (run.tasks[n].item->stage == stage && run.tasks[n].item->state != ENDED) pthread_cond_wait(&item_ended, &lock);
    pthread_mutex_unlock(&lock);
    free(pool);
    free(run.edges);
    free(run.order);
    free(run.named);
    free(run.tasks);
}

__attribute__((weak)) void tracer_add_startup_item(struct tracer_startup_item *item) {
    pthread_mutex_lock(&lock);
    item->next = added;
    added = item;
    pthread_mutex_unlock(&lock);
}
