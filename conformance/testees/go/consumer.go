// SPDX-License-Identifier: MIT
//
// A KMES consumer in one file of Go, with the standard library only: copy from it what you need. It
// follows the specification (5.1), its errata (E..) and the testee contract. For each CPU, one
// goroutine drains the buffer, sleeps while it is empty, and takes the next one after a resize.
package main

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	sysKmesAttach, attachRetries = 1091, 5000
	futexWait                    = 0        // shared: without FUTEX_PRIVATE_FLAG (E17)
	metadataBytes, headerBytes   = 4096, 29 // the header is that of an event, before its type
	// 5.1.6: offsets in the first page of the mapping.
	versionAt, capacityAt, dataOffsetAt = 8, 16, 24
	generation, writePos, tailPos       = 32, 64, 72
	futexCounter, needWake              = 128, 132
)

var (
	little     = binary.LittleEndian
	reportFile = os.Stdout
	attachLock sync.Mutex // only one goroutine at a time holds files for all CPUs
)

// attach calls kmes_attach: an fd for the CPU's current buffer, its identity, the capacity, the
// number of CPUs. It tries again while rings or means are missing, and adds slots after ERANGE.
func attach(cpu int) (fd int, status syscall.Stat_t, capacity uint64, count int32) {
	attachLock.Lock()
	defer attachLock.Unlock()
	count = 4
	for tries := 0; ; tries++ {
		fds := make([]int32, count)
		_, _, err := syscall.Syscall(sysKmesAttach, uintptr(unsafe.Pointer(&fds[0])),
			uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&capacity)))
		if err == 0 {
			for other, fd := range fds[:count] {
				if other != cpu {
					syscall.Close(int(fd))
				}
			}
			if err := syscall.Fstat(int(fds[cpu]), &status); err != nil {
				log.Fatalln("fstat:", err)
			}
			return int(fds[cpu]), status, capacity, count
		}
		switch err {
		case syscall.ERANGE:
			continue
		case syscall.EAGAIN, syscall.EPERM, syscall.ENOMEM, syscall.ENFILE, syscall.EMFILE:
			if tries < attachRetries {
				time.Sleep(time.Millisecond)
				continue
			}
		}
		log.Fatalln("kmes_attach:", err)
	}
}

type consumer struct { // of one CPU, private to its goroutine
	cpu                  int
	ring                 []byte // the mapping of the current buffer
	capacity, generation uint64 // of the current buffer
	replaced             bool   // known to have a successor, whatever its generation shows
	readPos              uint64 // in the current buffer
	lastSequence         uint64 // over all buffers of this CPU (E21); 0: none delivered yet
	event, report        []byte
	fence                uint32
}

// Go's atomics are sequentially consistent, which is more than the required acquire and release.
func (c *consumer) load(field int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&c.ring[field])))
}

func (c *consumer) flush() { // whole lines in one write: the goroutines do not mix
	if _, err := reportFile.Write(c.report); err != nil {
		log.Fatalln("cannot write the report:", err)
	}
	c.report = c.report[:0]
}

func (c *consumer) refuse(reason string) bool {
	c.report = fmt.Appendf(c.report, "R %d %s\n", c.cpu, reason)
	return false
}

// takeBuffer does 5.1.8.3 steps 2 to 6, for the first and each later buffer. False: it refuses the
// buffer. Reserved bytes are no reason to refuse: later versions may use them.
func (c *consumer) takeBuffer() bool {
	fd, taken, capacity, _ := attach(c.cpu)
	ring, err := syscall.Mmap(fd, 0, int(metadataBytes+2*capacity),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	syscall.Close(fd) // the mapping stays
	if err != nil {
		return c.refuse("cannot be mapped")
	}
	syscall.Munmap(c.ring) // the previous mapping, if there is one
	c.ring, c.capacity = ring, capacity
	switch {
	case string(ring[:8]) != "KMESRING":
		return c.refuse("bad magic")
	case little.Uint32(ring[versionAt:]) != 1:
		return c.refuse("unknown version")
	case capacity < 32 || capacity&(capacity-1) != 0 || capacity>>60 != 0:
		return c.refuse("capacity is no power of two")
	case little.Uint64(ring[capacityAt:]) != capacity: // E14
		return c.refuse("capacity is not what is mapped")
	case little.Uint64(ring[dataOffsetAt:]) != metadataBytes:
		return c.refuse("bad data_offset")
	}
	// E19: a buffer retired since the attach already shows its successor's generation, so no change
	// would follow. If it still is the CPU's current buffer, the generation is its own.
	c.generation = c.load(generation)
	again, current, _, _ := attach(c.cpu)
	syscall.Close(again)
	c.replaced = current.Ino != taken.Ino || current.Dev != taken.Dev
	// E11: positions of the old buffer say nothing about this one. Start at its oldest event (E21).
	c.readPos = c.load(tailPos)
	c.report = fmt.Appendf(c.report, "G %d %d\n", c.cpu, c.generation)
	return true
}

// copyEvent is 5.1.8.1 step 4: a private copy of the event (E6). False: its sizes are impossible:
// they may be torn (E7). An event of more than half of the capacity can have survived a shrink.
func (c *consumer) copyEvent(readable uint64) bool {
	if readable < headerBytes || readable > c.capacity {
		return false
	}
	from := c.ring[metadataBytes+(c.readPos&(c.capacity-1)):] // 5.1.4: in one piece from here
	c.event = append(c.event[:0], from[:headerBytes]...)
	eventSize, headerSize := uint64(little.Uint32(c.event)), uint64(little.Uint32(c.event[4:]))
	typeLen := uint64(little.Uint16(c.event[27:]))
	sound := typeLen > 0 && headerSize >= headerBytes+typeLen
	if sound = sound && eventSize >= headerSize && eventSize <= readable; sound {
		c.event = append(c.event[:0], from[:eventSize]...)
	}
	return sound
}

// deliver reports the copied event, unless an earlier buffer contained it. False: the end event.
func (c *consumer) deliver() bool {
	timestamp, sequence := little.Uint64(c.event[8:]), little.Uint64(c.event[16:])
	if sequence <= c.lastSequence {
		return true
	}
	if lost := sequence - c.lastSequence - 1; c.lastSequence != 0 && lost > 0 { // 5.1.9
		c.report = fmt.Appendf(c.report, "L %d %d\n", c.cpu, lost)
	}
	c.lastSequence = sequence
	kind := c.event[headerBytes:][:little.Uint16(c.event[27:])]
	payload := c.event[little.Uint32(c.event[4:]):]
	digest := uint64(0xcbf29ce484222325) // FNV-1a
	for _, b := range payload {
		digest = (digest ^ uint64(b)) * 0x100000001b3
	}
	c.report = fmt.Appendf(c.report, "E %d %d %d %d %x %d %016x\n", c.cpu, sequence, timestamp,
		c.event[26], kind, len(payload), digest)
	if len(c.report) >= 65536 {
		c.flush()
	}
	return string(kind) != "kmes.conformance.end"
}

// drain is 5.1.8.1. False: this CPU has ended. Each move of readPos leads back to step 1 (E20).
func (c *consumer) drain() bool {
	for {
		end := c.load(writePos) // step 1
		if c.readPos >= end {
			return true
		}
		lapped := c.load(tailPos) > c.readPos // step 2
		sound := !lapped && c.copyEvent(end-c.readPos)
		atomic.AddUint32(&c.fence, 1)     // E4: the copy is done before the next load
		switch tail := c.load(tailPos); { // step 5
		case tail > c.readPos:
			c.readPos = tail // lapped, or torn
		case !sound:
			return c.refuse("corrupt event")
		case !c.deliver():
			return false
		default:
			c.readPos += uint64(len(c.event)) // step 6
		}
	}
}

func (c *consumer) isRetired() bool { // by any change, not only plus one (E15); never cached (E9)
	return c.replaced || c.load(generation) != c.generation
}

// sleepUntilWoken is 5.1.8.2, alone on the buffer (E12). Go has no atomic bytes: it stores four.
func (c *consumer) sleepUntilWoken() {
	word := (*uint32)(unsafe.Pointer(&c.ring[futexCounter]))
	flag := (*uint32)(unsafe.Pointer(&c.ring[needWake]))
	counter := atomic.LoadUint32(word)                   // E2: before the re-check
	atomic.SwapUint32(flag, 1)                           // E1: a full barrier
	if c.load(writePos) <= c.readPos && !c.isRetired() { // E3: loads both again
		_, _, err := syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait,
			uintptr(counter), 0, 0, 0)
		if err != 0 && err != syscall.EAGAIN && err != syscall.EINTR { // all count as a wake
			log.Fatalln("futex:", err)
		}
	}
	atomic.StoreUint32(flag, 0)
}

func (c *consumer) consume() {
	for more := c.takeBuffer(); more; {
		// Before the drain, so that it sees the last write_pos of a retired buffer (E10, E24).
		retired := c.isRetired()
		more = c.drain()
		c.flush()
		if more && retired {
			more = c.takeBuffer()
		} else if more {
			c.sleepUntilWoken()
		}
	}
	c.flush()
}

func main() {
	if fd, err := strconv.Atoi(os.Getenv("KMES_REPORT_FD")); err == nil {
		reportFile = os.NewFile(uintptr(fd), "report")
	}
	fd, _, _, count := attach(0)
	syscall.Close(fd)
	var group sync.WaitGroup
	group.Add(int(count))
	for cpu := 0; cpu < int(count); cpu++ {
		go func(c *consumer) {
			c.consume()
			group.Done()
		}(&consumer{cpu: cpu})
	}
	group.Wait()
}
