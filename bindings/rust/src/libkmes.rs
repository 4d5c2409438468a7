// SPDX-License-Identifier: MIT
//! The attach functions of libkmes (kmes/user/libkmes_reader.h).
use crate::linux::{sleep_on, EOVERFLOW};
use crate::{Error, Identity, Mapping, Platform, Wake};
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// struct kmes_mapping of kmes/reader.h.
#[repr(C)]
struct CMapping {
    base: *mut c_void,
    mapped_bytes: u64,
    device: u64,
    inode: u64,
    session: u64,
    needs_barrier: bool,
    owner: *mut c_void,
    next_sequence: u64,
}

type Attach = unsafe extern "C" fn(*mut c_void, u16, *mut CMapping) -> c_int;
type Detach = unsafe extern "C" fn(*mut c_void, *mut CMapping);

/// struct kmes_attach_functions, with which struct kmes_reader_config begins.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct AttachFunctions {
    attach: Attach,
    identify: Attach,
    detach: Detach,
    context: *mut c_void,
}

/// struct kmes_reader_config, and room for what a later release adds to it.
#[repr(C)]
struct Config {
    functions: MaybeUninit<AttachFunctions>,
    is_current: Option<Attach>,
    rest: [u64; 127],
}

#[link(name = "kmes")]
extern "C" {
    fn kmes_reader_by_libkmes(config: *mut Config, cpu: u16);
    fn kmes_cpus_by_libkmes() -> c_int;
}

/// Attaches as libkmes does: by the system call, the device of the module, or the socket that
/// `KMES_SOCKET` names. The program links with `-lkmes`.
#[derive(Clone, Copy, Debug)]
pub struct Libkmes {
    functions: AttachFunctions,
    is_current: Option<Attach>,
    next_sequence: u64, // 0: unknown
}

// SAFETY: the functions may be called from any thread; their context is a number (libkmes_reader.h:
// "any number of readers, in any thread").
unsafe impl Send for Libkmes {}

impl Libkmes {
    /// For the reader of one CPU.
    pub fn new(cpu: u16) -> Libkmes {
        let functions = MaybeUninit::zeroed();
        let mut config = Config { functions, is_current: None, rest: [0; 127] };
        // SAFETY: the function fills the attach functions, and nothing beyond the configuration.
        let functions = unsafe {
            kmes_reader_by_libkmes(&mut config, cpu);
            config.functions.assume_init()
        };
        Libkmes { functions, is_current: config.is_current, next_sequence: 0 }
    }

    /// The number of CPUs of the producer.
    pub fn cpu_count() -> Result<u16, Error> {
        // SAFETY: no arguments.
        let count = unsafe { kmes_cpus_by_libkmes() };
        u16::try_from(count).map_err(|_| Error::Os(if count < 0 { -count } else { EOVERFLOW }))
    }

    fn call(&self, function: Attach, cpu: u16) -> Result<CMapping, Error> {
        let mut mapping = CMapping::of(&Identity::default());
        // SAFETY: a function of libkmes, with its own context.
        match unsafe { function(self.functions.context, cpu, &mut mapping) } {
            0 => Ok(mapping),
            error => Err(Error::Os(-error)),
        }
    }
}

impl CMapping {
    /// Without memory.
    fn of(identity: &Identity) -> CMapping {
        let Identity { device, inode, session } = *identity;
        CMapping {
            base: null_mut(),
            mapped_bytes: 0,
            device,
            inode,
            session,
            needs_barrier: false,
            owner: null_mut(),
            next_sequence: 0,
        }
    }

    fn identity(&self) -> Identity {
        Identity { device: self.device, inode: self.inode, session: self.session }
    }
}

// SAFETY: kmes_map lays a buffer out as 5.1.5 says, from files that cannot shrink. A producer that
// leaves its fence to its consumers refuses, because nobody has promised it a barrier.
unsafe impl Platform for Libkmes {
    fn attach(&mut self, cpu: u16) -> Result<Mapping, Error> {
        let mapping = self.call(self.functions.attach, cpu)?;
        Ok(Mapping {
            base: NonNull::new(mapping.base.cast()).ok_or(Error::BadLayout)?,
            mapped_bytes: mapping.mapped_bytes,
            identity: mapping.identity(),
            owner: mapping.owner as usize,
        })
    }

    fn identify(&mut self, cpu: u16) -> Result<Identity, Error> {
        let mapping = self.call(self.functions.identify, cpu)?;
        self.next_sequence = mapping.next_sequence;
        Ok(mapping.identity())
    }

    /// libkmes waits for the answer for 1 s at most, and for that of `identify` for 30 s.
    fn is_current(&mut self, cpu: u16, known: &Identity) -> Result<bool, Error> {
        let mut mapping = CMapping::of(known);
        match self.is_current {
            None => Ok(self.identify(cpu)? == *known),
            // SAFETY: a function of libkmes, with its own context. Without an owner, which is a
            // lease, it only asks.
            Some(function) => {
                match unsafe { function(self.functions.context, cpu, &mut mapping) } {
                    error if error < 0 => Err(Error::Os(-error)),
                    answer => Ok(answer != 0),
                }
            }
        }
    }

    fn next_sequence(&self) -> Option<u64> {
        Some(self.next_sequence).filter(|next| *next > 0)
    }

    unsafe fn detach(&mut self, mapping: Mapping) {
        let mut mapping = CMapping {
            base: mapping.base.as_ptr().cast(),
            mapped_bytes: mapping.mapped_bytes,
            owner: mapping.owner as *mut c_void,
            ..CMapping::of(&mapping.identity)
        };
        // SAFETY: attach has made this mapping, and the caller has no reference to it.
        unsafe { (self.functions.detach)(self.functions.context, &mut mapping) };
    }

    fn sleep(
        &mut self,
        word: &AtomicU32,
        expected: u32,
        limit: Option<Duration>,
    ) -> Result<Wake, Error> {
        sleep_on(word, expected, limit)
    }
}
