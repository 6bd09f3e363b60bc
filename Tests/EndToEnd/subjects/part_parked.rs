// Waits of Rust's std::sync and std::thread, one after the other. A line for each: case, thread that waited, nanoseconds, the thread that
// let it go on. The other thread computes meanwhile.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Condvar, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

extern "C" {
    fn gettid() -> i32;
}
fn tid() -> i32 {
    unsafe { gettid() }
}

static BEGUN: AtomicBool = AtomicBool::new(false);
fn meet() {
    while !BEGUN.load(Ordering::Acquire) {
        std::hint::spin_loop()
    }
    BEGUN.store(false, Ordering::Release)
}
/// Lets the other go on, and works as long as that is to wait.
#[inline(never)]
fn work() {
    BEGUN.store(true, Ordering::Release);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(50) {}
}

#[inline(never)]
fn case<T: Send + 'static>(name: &str, other: impl FnOnce() -> T + Send + 'static, waits: impl FnOnce()) {
    let thread = thread::spawn(move || {
        other();
        tid()
    });
    meet();
    let begin = Instant::now();
    waits();
    let length = begin.elapsed().as_nanos();
    println!("{} {} {} {}", name, tid(), length, thread.join().unwrap());
}

static ONCE: Once = Once::new();
static CELL: OnceLock<i32> = OnceLock::new();

fn main() {
    let one = Arc::new(Mutex::new(0));
    let two = one.clone();
    case("mutex", move || { let _held = two.lock(); work() }, || drop(one.lock()));
    let one = Arc::new(RwLock::new(0));
    let two = one.clone();
    case("read", move || { let _held = two.write(); work() }, || drop(one.read()));
    let two = one.clone();
    case("write", move || { let _held = two.read(); work() }, || drop(one.write()));
    case("once", || ONCE.call_once(work), || ONCE.call_once(|| {}));
    case("cell", || { CELL.get_or_init(|| { work(); 1 }); }, || { CELL.get_or_init(|| 2); });
    let me = thread::current();
    case("park", move || { work(); me.unpark() }, thread::park);
    let (sender, receiver) = mpsc::channel();
    case("channel", move || { work(); sender.send(1).unwrap() }, || { receiver.recv().unwrap(); });
    let one = Arc::new((Mutex::new(false), Condvar::new()));
    let two = one.clone();
    case(
        "condvar",
        move || { work(); *two.0.lock().unwrap() = true; two.1.notify_one() },
        || { let mut done = one.0.lock().unwrap(); while !*done { done = one.1.wait(done).unwrap() } },
    );
}
