// SPDX-License-Identifier: MIT
//! The merge of this crate and that of libkmes, over the same rings.
use crate::tests::merge::{worlds, Random, FOREVER, HOUR_NS, SMALL};
use crate::tests::World;
use crate::{Merge, MergeOptions, Options, Place, Platform, ReaderSet};
use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::{null_mut, NonNull};
use std::rc::Rc;
use std::time::Duration;

/// struct kmes_mapping of kmes/reader.h.
#[repr(C)]
struct CMapping {
    base: *mut u8,
    mapped_bytes: u64,
    device: u64,
    inode: u64,
    session: u64,
    needs_barrier: bool,
    owner: usize,
    next_sequence: u64,
}

/// struct kmes_reader_config, as far as it is used here.
#[repr(C)]
struct CConfig {
    attach: unsafe extern "C" fn(*mut c_void, u16, *mut CMapping) -> c_int,
    identify: unsafe extern "C" fn(*mut c_void, u16, *mut CMapping) -> c_int,
    detach: unsafe extern "C" fn(*mut c_void, *mut CMapping),
    context: *mut c_void,
    is_current: usize,
    platform: *mut c_void,
    others: [u16; 27],
    cpu: u16,
}

/// struct kmes_reader_set_options of kmes/user/reader_set.h.
#[repr(C)]
struct CSetOptions {
    bytes: u64,
    flags: u64,
    watermark: [u64; 2],
    configure: unsafe extern "C" fn(*mut c_void, *mut CConfig, u16),
    cpus: unsafe extern "C" fn(*mut c_void) -> c_int,
    context: *mut c_void,
    place: usize,
    places: u64,
}

/// struct kmes_merge_options of kmes/user/merge.h.
#[repr(C)]
struct CMergeOptions {
    hold_ns: u64,
    most_bytes: u64,
}

/// struct kmes_merge_statistics.
#[repr(C)]
struct CStatistics {
    delivered: u64,
    out_of_order: u64,
    forced: u64,
    held_bytes: u64,
}

/// struct kmes_event_view of kmes/event.h.
#[repr(C)]
struct CView {
    timestamp: u64,
    sequence: u64,
    lost_before: u64,
    pointers: [usize; 2],
    lengths: [u32; 3],
    kind_bytes: u16,
    cpu: u16,
    origin: u8,
}

#[link(name = "kmes")]
extern "C" {
    fn kmes_user_platform() -> *mut c_void;
    fn kmes_reader_set_open(set: *mut *mut c_void, options: *const CSetOptions) -> c_int;
    fn kmes_reader_set_close(set: *mut c_void);
    fn kmes_merge_open(
        merge: *mut *mut c_void,
        set: *mut c_void,
        options: *const CMergeOptions,
    ) -> c_int;
    fn kmes_merge_close(merge: *mut c_void);
    fn kmes_merge_next(merge: *mut c_void, view: *mut CView, is_late: *mut bool) -> c_int;
    fn kmes_merge_flush(merge: *mut c_void);
    fn kmes_merge_get_place(merge: *const c_void, cpu: c_uint) -> super::CPlace;
    fn kmes_merge_get_statistics(merge: *const c_void) -> CStatistics;
}

type Worlds = Vec<Rc<World>>;

unsafe extern "C" fn attach(context: *mut c_void, cpu: u16, mapping: *mut CMapping) -> c_int {
    // SAFETY: the context is that of `open`, and libkmes passes a mapping to fill.
    unsafe {
        let worlds = &mut *context.cast::<Worlds>();
        let made = worlds[usize::from(cpu)].attach(cpu).unwrap();
        *mapping = CMapping {
            base: made.base.as_ptr(),
            mapped_bytes: made.mapped_bytes,
            device: made.identity.device,
            inode: made.identity.inode,
            session: made.identity.session,
            needs_barrier: false,
            owner: 0,
            next_sequence: 0,
        };
    }
    0
}

unsafe extern "C" fn detach(_: *mut c_void, _: *mut CMapping) {}

unsafe extern "C" fn configure(context: *mut c_void, config: *mut CConfig, cpu: u16) {
    // SAFETY: libkmes passes a configuration to fill.
    unsafe {
        (*config).attach = attach;
        (*config).identify = attach;
        (*config).detach = detach;
        (*config).context = context;
        (*config).platform = kmes_user_platform();
        (*config).cpu = cpu;
    }
}

unsafe extern "C" fn count(context: *mut c_void) -> c_int {
    // SAFETY: the context is that of `open`.
    let worlds = unsafe { &*context.cast::<Worlds>() };
    worlds.len() as c_int
}

/// The timestamp, the CPU, the sequence number, and whether it is out of order.
type Found = Option<(u64, u16, u64, bool)>;

/// The merge of libkmes.
struct CMerge {
    set: NonNull<c_void>,
    merge: NonNull<c_void>,
    _worlds: Box<Worlds>,
}

impl CMerge {
    fn open(worlds: &Worlds, hold_ns: u64) -> CMerge {
        let mut worlds = Box::new(worlds.clone());
        let (mut set, mut merge) = (null_mut(), null_mut());
        let context: *mut Worlds = &mut *worlds;
        let options = CSetOptions {
            bytes: size_of::<CSetOptions>() as u64,
            flags: 0,
            watermark: [0; 2],
            configure,
            cpus: count,
            context: context.cast(),
            place: 0,
            places: 0,
        };
        // SAFETY: the structures are those of libkmes, and the worlds live as long as the set.
        unsafe {
            assert_eq!(0, kmes_reader_set_open(&mut set, &options));
            let options = CMergeOptions { hold_ns, most_bytes: 0 };
            assert_eq!(0, kmes_merge_open(&mut merge, set, &options));
        }
        let [set, merge] = [set, merge].map(|made| NonNull::new(made).unwrap());
        CMerge { set, merge, _worlds: worlds }
    }

    fn next(&mut self) -> Found {
        let (mut view, mut is_late) = (MaybeUninit::<CView>::uninit(), false);
        // SAFETY: the call fills the view if it returns 1.
        unsafe {
            match kmes_merge_next(self.merge.as_ptr(), view.as_mut_ptr(), &mut is_late) {
                1 => {
                    let view = view.assume_init();
                    Some((view.timestamp, view.cpu, view.sequence, is_late))
                }
                found => {
                    assert_eq!(0, found);
                    None
                }
            }
        }
    }

    fn flush(&mut self) {
        // SAFETY: the merge is open.
        unsafe { kmes_merge_flush(self.merge.as_ptr()) };
    }

    fn place(&self, cpu: u16) -> Option<Place> {
        // SAFETY: as above.
        let place = unsafe { kmes_merge_get_place(self.merge.as_ptr(), cpu.into()) };
        let super::CPlace { session, last_sequence, is_known } = place;
        Some(Place { session, last_sequence }).filter(|_| is_known)
    }

    fn counts(&self) -> (u64, u64, u64, bool) {
        // SAFETY: as above.
        let counts = unsafe { kmes_merge_get_statistics(self.merge.as_ptr()) };
        (counts.delivered, counts.out_of_order, counts.forced, counts.held_bytes > 0)
    }
}

impl Drop for CMerge {
    fn drop(&mut self) {
        // SAFETY: the last use of both.
        unsafe {
            kmes_merge_close(self.merge.as_ptr());
            kmes_reader_set_close(self.set.as_ptr());
        }
    }
}

struct Both {
    worlds: Worlds,
    rust: Merge<Rc<World>>,
    c: CMerge,
}

impl Both {
    fn open(cpus: usize, hold: Duration) -> Both {
        let worlds = worlds(cpus, SMALL);
        let c = CMerge::open(&worlds, hold.as_nanos() as u64);
        let set = ReaderSet::open(worlds.iter().cloned(), Options::default()).unwrap();
        let rust = set.merge(MergeOptions { hold, most_bytes: 0 });
        Both { worlds, rust, c }
    }

    /// False: no event is due in either of them.
    fn next(&mut self) -> bool {
        let merged = self.rust.next().unwrap();
        let found = merged.map(|merged| {
            (merged.event.timestamp_ns, merged.cpu, merged.event.sequence, merged.is_out_of_order)
        });
        assert_eq!(self.c.next(), found);
        found.is_some()
    }

    fn flush(&mut self) {
        self.rust.flush();
        self.c.flush();
    }

    fn compare_counts(&self) {
        let rust = self.rust.statistics();
        let own = (rust.delivered, rust.out_of_order, rust.forced, rust.held_bytes > 0);
        assert_eq!(self.c.counts(), own);
        for cpu in 0..self.worlds.len() as u16 {
            assert_eq!(self.c.place(cpu), self.rust.place(cpu));
        }
    }
}

/// The hold time is so long that no event becomes due by it during the test, or so short that each
/// timestamp is older. Both merges must then do the same.
#[test]
fn order_is_that_of_the_c_library() {
    let mut random = Random(2);
    for run in 0..300 {
        let is_forever = run % 2 == 0;
        let hold = if is_forever { FOREVER } else { Duration::from_nanos(HOUR_NS) };
        let step_back = if is_forever { 300 } else { 3 * HOUR_NS };
        let cpus = 1 + random.below(6) as usize;
        let (mut clocks, steps_of_256) = (vec![10_000 * HOUR_NS; cpus], random.below(30));
        let mut both = Both::open(cpus, hold);
        for _ in 0..400 {
            let cpu = random.below(cpus as u64) as usize;
            clocks[cpu] += random.below(4);
            if random.below(256) < steps_of_256 {
                clocks[cpu] -= random.below(step_back);
            }
            match random.below(60) {
                0 => both.flush(),
                1..=39 => {
                    both.worlds[cpu].rings.borrow_mut()[0].emit_at(clocks[cpu], b"");
                }
                _ => _ = (0..random.below(5)).all(|_| both.next()),
            }
        }
        both.compare_counts();
        both.flush();
        while both.next() {}
        both.compare_counts();
    }
}
