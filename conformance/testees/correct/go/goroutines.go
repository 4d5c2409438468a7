// SPDX-License-Identifier: MIT
//
// A goroutine for each CPU, with the atomics of sync/atomic: the flag is a 32-bit store, and every
// store is a full barrier. Each goroutine is locked to its own thread, and sleeps without a limit.
//
// Built with -ldflags=-X=main.moving=yes, the goroutines move between threads as the runtime likes:
// each sleep may be on another thread. They sleep with an absolute limit, and leave garbage for the
// collector. It also runs thirty times a second, so that some thread is always at work.
package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	attachCall = 1091
	waitBitset = 9
)

var moving string // set by the linker

var (
	cpus      int
	attaching sync.Mutex
	out       *os.File
	theEnd    = []byte("kmes.conformance.end")
)

func attach(fds *int32, count *int32, capacity *uint64) syscall.Errno {
	_, _, failed := syscall.Syscall(attachCall, uintptr(unsafe.Pointer(fds)),
		uintptr(unsafe.Pointer(count)), uintptr(unsafe.Pointer(capacity)))
	return failed
}

// mayPass says whether an attach is tried again after an error.
func mayPass(failed syscall.Errno) bool {
	switch failed {
	case syscall.EAGAIN:
		return true
	case syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EPERM:
		return moving != ""
	}
	return false
}

type ring struct {
	cpu        int
	fd         int
	memory     []byte
	capacity   uint64
	generation uint64
	position   uint64
}

func (r *ring) word(at int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.memory[at])))
}

func (r *ring) short(at int) *uint32 { return (*uint32)(unsafe.Pointer(&r.memory[at])) }

func (r *ring) close() {
	syscall.Munmap(r.memory)
	syscall.Close(r.fd)
}

func open(cpu int) (*ring, string) {
	attaching.Lock()
	defer attaching.Unlock()
	fds := make([]int32, cpus)
	r := &ring{cpu: cpu}
	for {
		count := int32(cpus)
		failed := attach(&fds[0], &count, &r.capacity)
		if failed == 0 {
			break
		}
		if !mayPass(failed) {
			fmt.Fprintln(os.Stderr, "kmes_attach:", failed)
			os.Exit(1)
		}
		if moving != "" {
			time.Sleep(50 * time.Millisecond)
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	for i, fd := range fds {
		if i != cpu {
			syscall.Close(int(fd))
		}
	}
	r.fd = int(fds[cpu])
	var failed error
	r.memory, failed = syscall.Mmap(r.fd, 0, int(4096+2*r.capacity),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if failed != nil {
		fmt.Fprintln(os.Stderr, "mmap:", failed)
		os.Exit(1)
	}
	capacity := r.word(16)
	switch {
	case !bytes.Equal(r.memory[:8], []byte("KMESRING")):
		return r, "bad magic"
	case *r.short(8) != 1:
		return r, "unknown version"
	case capacity == 0 || capacity&(capacity-1) != 0 || capacity != r.capacity:
		return r, "bad capacity"
	case r.word(24) != 4096:
		return r, "bad data_offset"
	}
	r.generation = r.word(32)
	r.position = r.word(72)
	return r, ""
}

type event struct {
	sequence, time uint64
	origin         byte
	kind, payload  []byte
}

func number(from []byte, size int) uint64 {
	value := uint64(0)
	for i := size - 1; i >= 0; i-- {
		value = value<<8 | uint64(from[i])
	}
	return value
}

// parse reads only a private copy.
func parse(copied []byte) (event, bool) {
	header, kind := number(copied[4:], 4), number(copied[27:], 2)
	if kind == 0 || 29+kind > header || header > uint64(len(copied)) {
		return event{}, false
	}
	return event{number(copied[16:], 8), number(copied[8:], 8), copied[26],
		copied[29 : 29+kind], copied[header:]}, true
}

// take returns the next event; ok says that there is something, whole that it can be an event.
func (r *ring) take() (found event, ok bool, whole bool) {
	for {
		end := r.word(64)
		if r.position >= end {
			return event{}, false, true
		}
		if tail := r.word(72); tail > r.position {
			r.position = tail
			continue
		}
		room := end - r.position
		if room > r.capacity {
			room = 0 // corrupt content (E26): no event fits
		}
		at := 4096 + r.position&(r.capacity-1)
		size := uint64(0)
		if room >= 30 {
			size = number(append([]byte(nil), r.memory[at:at+4]...), 4)
		}
		var copied []byte
		if size >= 30 && size <= room {
			copied = append(copied, r.memory[at:at+size]...)
		}
		if tail := r.word(72); tail > r.position {
			r.position = tail
			continue
		}
		if copied == nil {
			return event{}, true, false
		}
		found, whole = parse(copied)
		r.position += size
		return found, true, whole
	}
}

func (r *ring) wait(seen uint32) {
	word := uintptr(unsafe.Pointer(r.short(128)))
	if moving == "" {
		syscall.Syscall6(syscall.SYS_FUTEX, word, 0, uintptr(seen), 0, 0, 0)
		return
	}
	var until syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&until)), 0)
	until.Sec += 3
	syscall.Syscall6(syscall.SYS_FUTEX, word, waitBitset, uintptr(seen),
		uintptr(unsafe.Pointer(&until)), 0, 0xffffffff)
}

func (r *ring) sleep() {
	seen := atomic.LoadUint32(r.short(128))
	atomic.StoreUint32(r.short(132), 1)
	if r.word(64) <= r.position && r.word(32) == r.generation {
		r.wait(seen)
	}
	atomic.StoreUint32(r.short(132), 0)
}

func consume(cpu int, done *sync.WaitGroup) {
	defer done.Done()
	if moving == "" {
		runtime.LockOSThread()
	}
	var records bytes.Buffer
	flush := func() {
		if records.Len() > 0 {
			out.Write(records.Bytes())
			records.Reset()
		}
	}
	defer flush()
	last := uint64(0)
	r, reason := open(cpu)
	for reason == "" {
		retired := r.word(32) != r.generation
		if moving != "" {
			runtime.GC()
		}
		for {
			found, ok, whole := r.take()
			if !whole {
				reason = "corrupt content"
			}
			if !ok || !whole {
				break
			}
			if found.sequence <= last {
				continue
			}
			if last != 0 && found.sequence != last+1 {
				fmt.Fprintf(&records, "L %d %d\n", cpu, found.sequence-last-1)
			}
			last = found.sequence
			digest := fnv.New64a()
			digest.Write(found.payload)
			fmt.Fprintf(&records, "E %d %d %d %d %x %d %016x\n", cpu, found.sequence, found.time,
				found.origin, found.kind, len(found.payload), digest.Sum64())
			if bytes.Equal(found.kind, theEnd) {
				return
			}
		}
		flush()
		if reason != "" {
			break
		}
		if !retired {
			r.sleep()
			continue
		}
		r.close()
		if r, reason = open(cpu); reason == "" {
			fmt.Fprintf(&records, "G %d %d\n", cpu, r.generation)
		}
	}
	fmt.Fprintf(&records, "R %d %s\n", cpu, reason)
}

func main() {
	fd := 1
	if text := os.Getenv("KMES_REPORT_FD"); text != "" {
		fd, _ = strconv.Atoi(text)
	}
	out = os.NewFile(uintptr(fd), "report")
	if moving != "" {
		go func() {
			for range time.Tick(30 * time.Millisecond) {
				runtime.GC()
			}
		}()
	}
	for cpus == 0 {
		count, capacity := int32(0), uint64(0)
		attach(nil, &count, &capacity)
		cpus = int(count)
	}
	var done sync.WaitGroup
	for i := 0; i < cpus; i++ {
		done.Add(1)
		go consume(i, &done)
	}
	done.Wait()
}
