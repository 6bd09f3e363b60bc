// Functions that tell an event loop: those in which it waits, those that run one, and those by which a program leaves it for good.

enum LoopFunction: UInt8 {
    /// A loop waits in it for its next events.
    case waits = 1
    /// It dispatches events: called in a callback, it is a loop within the loop.
    case runs
    /// The program does not come back from it: the process ends, or executes another program.
    case ends

    /// Names as people write them, for messages.
    static let waitsShown = "poll, epoll_wait, select, io_uring_submit_and_wait and their like"

    private static let known: [String: LoopFunction] = {
        var known: [String: LoopFunction] = [:]
        func add(_ names: String, _ function: LoopFunction) {
            for name in names.split(whereSeparator: { $0.isWhitespace }) { known[String(name)] = function }
        }
        // poll(2), select(2), epoll_wait(2), io_getevents(2); liburing's src/queue.c and src/include/liburing.h; GLib's glib/gpoll.c.
        add(
            """
            poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2 io_getevents io_pgetevents g_poll
            io_uring_enter io_uring_enter2 io_uring_get_cqe io_uring_wait_cqes io_uring_wait_cqe_timeout io_uring_wait_cqes_min_timeout
            io_uring_submit_and_wait io_uring_submit_and_wait_timeout io_uring_submit_and_wait_min_timeout io_uring_submit_and_wait_reg
            """, .waits)
        // GLib and GTK, libuv, libevent, libev, sd-event, Qt, CoreFoundation and Dispatch, Tcl, FLTK, SDL.
        add(
            """
            g_main_loop_run g_main_context_iteration g_application_run gtk_main gtk_main_iteration gtk_main_iteration_do gtk_dialog_run
            uv_run event_base_loop event_base_dispatch event_loop event_dispatch ev_run ev_loop sd_event_loop sd_event_run
            _ZN10QEventLoop4execE6QFlagsINS_17ProcessEventsFlagEE _ZN10QEventLoop13processEventsE6QFlagsINS_17ProcessEventsFlagEE
            _ZN16QCoreApplication13processEventsE6QFlagsIN10QEventLoop17ProcessEventsFlagEE _ZN7QDialog4execEv
            CFRunLoopRun CFRunLoopRunInMode dispatch_main _dispatch_main_queue_callback_4CF Tcl_DoOneEvent Tk_MainLoop _ZN2Fl4waitEv _ZN2Fl3runEv
            """, .runs)
        add(
            """
            exit _exit _Exit quick_exit execve execv execvp execvpe execl execle execlp fexecve execveat
            """, .ends)
        return known
    }()

    /// Returns one entry for each row. A program's own function of such a name is unrelated.
    static func all(_ table: FunctionNames, of program: String) -> [LoopFunction?] {
        [nil]
            + table.rows.map { row in
                let symbol = row.symbol.isEmpty ? row.name : row.symbol
                return row.module == program ? nil : WaitingFunction.spellings(symbol).lazy.compactMap { known[$0] }.first
            }
    }
}
