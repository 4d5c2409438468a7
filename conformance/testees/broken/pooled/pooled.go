// SPDX-License-Identifier: MIT
//
// A correct consumer for the patches of this folder: a goroutine for each CPU. One lock
// guards attaches, another the report. Go 1.19 or newer, without cgo.
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
	attachCall, futexWait, page, headerBytes                         = 1091, 0, 4096, 29
	generation, writePos, tailPos, futexCounter, needWake, dataStart = 32, 64, 72, 128, 132, 4096
)

var (
	little     = binary.LittleEndian
	reportFile = os.Stdout
	reportLock sync.Mutex
	attachLock sync.Mutex
)

// attachAll is kmes_attach, repeated while there are no rings yet.
func attachAll() ([]int32, uint64) {
	fds, capacity := make([]int32, 1), uint64(0)
	for tries := 0; tries < 5000; tries++ {
		count := int32(len(fds))
		_, _, err := syscall.Syscall(attachCall, uintptr(unsafe.Pointer(&fds[0])),
			uintptr(unsafe.Pointer(&count)), uintptr(unsafe.Pointer(&capacity)))
		switch err {
		case 0:
			return fds[:count], capacity
		case syscall.ERANGE:
			fds = make([]int32, count)
		case syscall.EAGAIN:
			time.Sleep(time.Millisecond)
		default:
			log.Fatalln("kmes_attach:", err)
		}
	}
	log.Fatalln("kmes_attach: no rings")
	return nil, 0
}

// attach returns the fd of the CPU's buffer, and its capacity.
func attach(cpu int) (int, uint64) {
	attachLock.Lock()
	defer attachLock.Unlock()
	fds, capacity := attachAll()
	for i, fd := range fds {
		if i != cpu {
			syscall.Close(int(fd))
		}
	}
	return int(fds[cpu]), capacity
}

type consumer struct {
	cpu                 int
	ring                []byte
	capacity            uint64
	generation, readPos uint64
	replaced            bool
	lastSequence        uint64
	event, report       []byte
	fence               uint32
}

func (c *consumer) load(field int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&c.ring[field])))
}

func (c *consumer) print(format string, values ...interface{}) {
	c.report = append(c.report, fmt.Sprintf(format, values...)...)
}

func (c *consumer) flush() {
	reportLock.Lock()
	defer reportLock.Unlock()
	if len(c.report) > 0 {
		if _, err := reportFile.Write(c.report); err != nil {
			log.Fatalln("report:", err)
		}
		c.report = c.report[:0]
	}
}

func (c *consumer) refuse(reason string) bool {
	c.print("R %d %s\n", c.cpu, reason)
	return false
}

func identity(fd int) (uint64, uint64) {
	var status syscall.Stat_t
	if err := syscall.Fstat(fd, &status); err != nil {
		log.Fatalln("fstat:", err)
	}
	return status.Dev, status.Ino
}

func (c *consumer) takeBuffer() bool {
	fd, capacity := attach(c.cpu)
	ring, err := syscall.Mmap(fd, 0, page+2*int(capacity), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		return c.refuse("cannot be mapped")
	}
	device, inode := identity(fd)
	if c.ring != nil {
		syscall.Munmap(c.ring)
	}
	c.ring, c.capacity = ring, capacity
	if fault := faultOf(ring, capacity); fault != "" {
		return c.refuse(fault)
	}
	c.generation = c.load(generation)
	now, _ := attach(c.cpu)
	deviceNow, inodeNow := identity(now)
	c.replaced = device != deviceNow || inode != inodeNow
	syscall.Close(now)
	syscall.Close(fd)
	c.readPos = c.load(tailPos)
	c.print("G %d %d\n", c.cpu, c.generation)
	return true
}

func faultOf(ring []byte, capacity uint64) string {
	switch {
	case string(ring[:8]) != "KMESRING":
		return "magic"
	case little.Uint32(ring[8:]) != 1:
		return "version"
	case little.Uint64(ring[16:]) != capacity || capacity&(capacity-1) != 0 || capacity < 64:
		return "capacity"
	case little.Uint64(ring[24:]) != dataStart:
		return "data_offset"
	}
	return ""
}

func (c *consumer) data() []byte { return c.ring[dataStart+c.readPos&(c.capacity-1):] }

// copyEvent makes a private copy. False if the sizes are impossible.
func (c *consumer) copyEvent(readable uint64) bool {
	if readable < headerBytes || readable > c.capacity { // E26
		return false
	}
	var header [headerBytes]byte
	copy(header[:], c.data())
	size, headerSize := uint64(little.Uint32(header[:])), uint64(little.Uint32(header[4:]))
	typeLen := uint64(little.Uint16(header[27:]))
	if typeLen == 0 || headerSize < headerBytes+typeLen || size < headerSize || size > readable {
		return false
	}
	if uint64(cap(c.event)) < size {
		c.event = make([]byte, size)
	}
	c.event = c.event[:size]
	copy(c.event, c.data())
	return true
}

func (c *consumer) deliver() bool {
	timestamp, sequence := little.Uint64(c.event[8:]), little.Uint64(c.event[16:])
	if sequence <= c.lastSequence {
		return true
	}
	if lost := sequence - c.lastSequence - 1; c.lastSequence != 0 && lost > 0 {
		c.print("L %d %d\n", c.cpu, lost)
	}
	c.lastSequence = sequence
	kind := c.event[headerBytes:][:little.Uint16(c.event[27:])]
	payload := c.event[little.Uint32(c.event[4:]):]
	digest := uint64(0xcbf29ce484222325)
	for _, b := range payload {
		digest = (digest ^ uint64(b)) * 0x100000001b3
	}
	c.print("E %d %d %d %d %x %d %016x\n", c.cpu, sequence, timestamp, c.event[26], kind,
		len(payload), digest)
	if len(c.report) >= 65536 {
		c.flush()
	}
	return string(kind) != "kmes.conformance.end"
}

func (c *consumer) drain() bool {
	for {
		end := c.load(writePos)
		if c.readPos >= end {
			return true
		}
		lapped := c.load(tailPos) > c.readPos
		sound := !lapped && c.copyEvent(end-c.readPos)
		atomic.AddUint32(&c.fence, 1)
		switch tail := c.load(tailPos); {
		case tail > c.readPos:
			c.readPos = tail
		case !sound:
			return c.refuse("corrupt")
		case !c.deliver():
			return false
		default:
			c.readPos += uint64(len(c.event))
		}
	}
}

func (c *consumer) isRetired() bool {
	return c.replaced || c.load(generation) != c.generation
}

func (c *consumer) setFlag(value uint32) {
	flag := (*uint32)(unsafe.Pointer(&c.ring[needWake]))
	atomic.SwapUint32(flag, value)
}

func (c *consumer) sleepUntilWoken() {
	word := (*uint32)(unsafe.Pointer(&c.ring[futexCounter]))
	counter := atomic.LoadUint32(word)
	c.setFlag(1)
	if c.load(writePos) <= c.readPos && !c.isRetired() {
		_, _, err := syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait,
			uintptr(counter), 0, 0, 0)
		if err != 0 && err != syscall.EAGAIN && err != syscall.EINTR {
			log.Fatalln("futex:", err)
		}
	}
	c.setFlag(0)
}

func (c *consumer) consume() {
	for more := c.takeBuffer(); more; {
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
	fds, _ := attachAll()
	for _, fd := range fds {
		syscall.Close(int(fd))
	}
	var group sync.WaitGroup
	group.Add(len(fds))
	for cpu := range fds {
		go func(c *consumer) {
			c.consume()
			group.Done()
		}(&consumer{cpu: cpu})
	}
	group.Wait()
}
