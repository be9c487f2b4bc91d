// A worker whose two ends are goroutines over buffered channels, one for each direction. The contract is docs/WORKERS.md. Blocks of up
// to 64 bytes are values; longer ones are slices of a pool, which the receiver gives back.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const (
	period = 256
	// The largest value in a channel, in bytes. The sequence is longer than a block by this, so that a whole value can be copied.
	valueMax = 64
)

type job struct {
	bytes, block, warmup int64
	trips                bool
	result               string
}

// fail ends the program with one sentence on standard error.
func fail(status int, format string, values ...any) {
	fmt.Fprintf(os.Stderr, "worker: "+format+"\n", values...)
	os.Exit(status)
}

// now returns the nanoseconds of CLOCK_MONOTONIC, which package time does not give.
func now() int64 {
	var time syscall.Timespec
	const clockMonotonic = 1
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&time)), 0)
	return time.Nano()
}

func number(name, text string, smallest int64) int64 {
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(value) < smallest {
		fail(2, "%s is %q, not a whole number from %d to 2^63 - 1", name, text, smallest)
	}
	return int64(value)
}

func parse(words []string) job {
	if len(words) != 5 || words[0] != "pair" && words[0] != "trip" {
		fail(2, "expected: pair|trip BYTES BLOCK WARMUP RESULT; both ends are goroutines of this program")
	}
	job := job{number("BYTES", words[1], 1), number("BLOCK", words[2], 1), number("WARMUP", words[3], 0), words[0] == "trip", words[4]}
	if job.bytes > math.MaxInt64-job.warmup {
		fail(2, "BYTES and WARMUP together exceed 2^63 - 1")
	}
	return job
}

func (job job) messageMax() int {
	return int(min(job.block, max(job.warmup, job.bytes, 1)))
}

// forBlocks calls each with the position and the length of every block of the count bytes from position from on; it returns the new position.
func (job job) forBlocks(from, count int64, each func(position int64, length int)) int64 {
	position, end := from, from+count
	for position < end {
		length := min(job.block, end-position)
		each(position, int(length))
		position += length
	}
	return position
}

// appendResult adds the line in one write.
func (job job) appendResult(format string, values ...any) {
	file, err := os.OpenFile(job.result, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err == nil {
		_, err = fmt.Fprintf(file, format, values...)
	}
	if err != nil {
		fail(1, "%v", err)
	}
	file.Close()
}

// arrived is the number of bytes, and their XOR in words, which are reduced to a byte at the end.
type arrived struct {
	bytes  int64
	folded uint64
}

func (arrived *arrived) add(message []byte) {
	arrived.bytes += int64(len(message))
	folded := arrived.folded
	for len(message) >= 32 {
		folded ^= binary.LittleEndian.Uint64(message) ^ binary.LittleEndian.Uint64(message[8:]) ^
			binary.LittleEndian.Uint64(message[16:]) ^ binary.LittleEndian.Uint64(message[24:])
		message = message[32:]
	}
	if len(message) == 4 {
		folded ^= uint64(binary.LittleEndian.Uint32(message))
		message = nil
	}
	for _, octet := range message {
		folded ^= uint64(octet)
	}
	arrived.folded = folded
}

func (arrived *arrived) report(job job, ready, ended int64) {
	folded := arrived.folded ^ arrived.folded>>32
	folded ^= folded >> 16
	folded ^= folded >> 8
	job.appendResult("recv bytes=%d xor=%d ready_ns=%d ended_ns=%d\n", arrived.bytes, folded&0xff, ready, ended)
	if arrived.bytes != job.warmup+job.bytes {
		fail(1, "received %d bytes instead of %d", arrived.bytes, job.warmup+job.bytes)
	}
}

// queue is one direction: a channel of T. pack makes a T of bytes, bytes returns its bytes, free gives back its memory.
type queue[T any] struct {
	channel chan T
	pack    func(bytes []byte, length int) T
	bytes   func(value *T) []byte
	free    func(value T)
}

func (queue queue[T]) receive(length int, use func(message []byte)) {
	value := <-queue.channel
	use(queue.bytes(&value)[:length])
	queue.free(value)
}

func run[T any](job job, queueOf func() queue[T]) {
	there, back := queueOf(), queueOf()
	var receiver sync.WaitGroup
	receiver.Go(func() {
		var arrived arrived
		ready := now()
		receiveBlock := func(_ int64, length int) { there.receive(length, arrived.add) }
		if job.trips {
			receiveBlock = func(int64, int) { back.channel <- <-there.channel }
		}
		job.forBlocks(job.forBlocks(0, job.warmup, receiveBlock), job.bytes, receiveBlock)
		if ended := now(); !job.trips {
			arrived.report(job, ready, ended)
		}
	})
	sequence := make([]byte, job.messageMax()+period+valueMax)
	for i := range sequence {
		sequence[i] = byte(i)
	}
	var arrived arrived
	sendBlock := func(position int64, length int) {
		there.channel <- there.pack(sequence[position%period:], length)
		if job.trips {
			back.receive(length, arrived.add)
		}
	}
	ready := now()
	sent := job.forBlocks(0, job.warmup, sendBlock)
	began := now()
	sent = job.forBlocks(sent, job.bytes, sendBlock)
	ended := now()
	receiver.Wait()
	if job.trips {
		arrived.report(job, ready, ended)
	}
	job.appendResult("send bytes=%d ready_ns=%d began_ns=%d\n", sent, ready, began)
}

// depth is the number of messages that a channel holds: 1 MiB of them, at least 16 and at most 1024.
func (job job) depth() int {
	return min(max((1<<20)/job.messageMax(), 16), 1024)
}

func values4(job job) func() queue[[4]byte] {
	return func() queue[[4]byte] {
		return queue[[4]byte]{make(chan [4]byte, job.depth()), func(bytes []byte, _ int) [4]byte { return [4]byte(bytes) },
			func(value *[4]byte) []byte { return value[:] }, func([4]byte) {}}
	}
}

func values64(job job) func() queue[[valueMax]byte] {
	return func() queue[[valueMax]byte] {
		return queue[[valueMax]byte]{make(chan [valueMax]byte, job.depth()),
			func(bytes []byte, _ int) [valueMax]byte { return [valueMax]byte(bytes) },
			func(value *[valueMax]byte) []byte { return value[:] }, func([valueMax]byte) {}}
	}
}

func slices(job job) func() queue[*[]byte] {
	pool := sync.Pool{New: func() any {
		block := make([]byte, job.messageMax())
		return &block
	}}
	return func() queue[*[]byte] {
		return queue[*[]byte]{make(chan *[]byte, job.depth()), func(bytes []byte, length int) *[]byte {
			block := pool.Get().(*[]byte)
			copy(*block, bytes[:length])
			return block
		}, func(block **[]byte) []byte { return **block }, func(block *[]byte) { pool.Put(block) }}
	}
}

func main() {
	job := parse(os.Args[1:])
	switch {
	case job.block <= 4:
		run(job, values4(job))
	case job.block <= valueMax:
		run(job, values64(job))
	default:
		run(job, slices(job))
	}
}
