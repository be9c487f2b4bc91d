// A worker of hosepipe in Go: `worker idiomatic|tuned ROLE ...`, as docs/WORKERS.md requires.
// The idiomatic variant uses os/exec and os.File; the tuned variant uses package syscall and words of 64 bits.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"
)

// period is the length of the byte sequence of the stream: byte i is i mod period.
const period = 256

// job is the command line in parsed form.
type job struct {
	role   string
	bytes  uint64
	block  uint64
	warmup uint64
	result string
	child  []string
}

// way is a variant of the program, idiomatic or tuned: how it moves bytes and computes their XOR.
type way struct {
	name string
	// start starts the child of a pair and returns the pipe to its standard input and a function that waits for it.
	start func(child []string) (pipe io.WriteCloser, wait func() error, err error)
	// output and input are standard output and standard input.
	output io.Writer
	input  io.Reader
	// fold is the XOR of all bytes of a block.
	fold func(block []byte) byte
}

func main() {
	if len(os.Args) < 2 {
		refuse("the first argument is idiomatic or tuned")
	}
	var chosen way
	switch os.Args[1] {
	case "idiomatic":
		chosen = way{"idiomatic", startCommand, os.Stdout, os.Stdin, foldBytes}
	case "tuned":
		chosen = way{"tuned", startProcess, descriptor(1), descriptor(0), foldWords}
		runtime.LockOSThread()
		debug.SetGCPercent(-1) // nothing is allocated while the stream is sent
	default:
		refuse("the first argument is idiomatic or tuned, not " + strconv.Quote(os.Args[1]))
	}
	asked := parse(os.Args[2:])
	var err error
	switch asked.role {
	case "send":
		err = send(asked, chosen.output, nil)
	case "recv":
		err = receive(asked, chosen)
	case "pair":
		err = pair(asked, chosen)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "go %s %s: %v\n", chosen.name, asked.role, err)
		os.Exit(1)
	}
}

// parse reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...], or ends the program with status 2.
func parse(arguments []string) job {
	if len(arguments) < 5 {
		refuse("wanted: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]")
	}
	asked := job{
		role:   arguments[0],
		bytes:  number("BYTES", arguments[1], 0, 63),
		block:  number("BLOCK", arguments[2], 1, 31),
		warmup: number("WARMUP", arguments[3], 0, 63),
		result: arguments[4],
		child:  arguments[5:],
	}
	switch {
	case asked.role != "send" && asked.role != "recv" && asked.role != "pair":
		refuse("the role is send, recv or pair, not " + strconv.Quote(asked.role))
	case asked.role == "pair" && len(asked.child) == 0:
		refuse("pair wants the command of its child after RESULT")
	case asked.role != "pair" && len(asked.child) > 0:
		refuse(asked.role + " takes nothing after RESULT")
	case asked.result == "":
		refuse("RESULT is a path and may not be empty")
	}
	return asked
}

// number parses a decimal argument that has only digits: strconv.ParseUint takes no sign and, in base 10, no underscore.
func number(name, text string, least uint64, bits int) uint64 {
	value, err := strconv.ParseUint(text, 10, bits)
	if err != nil || value < least {
		refuse(fmt.Sprintf("%s is a decimal number from %d to %d, not %q", name, least, uint64(1)<<bits-1, text))
	}
	return value
}

// refuse prints what is wrong with the command line and ends the program.
func refuse(sentence string) {
	fmt.Fprintln(os.Stderr, "go worker: "+sentence)
	os.Exit(2)
}

// send writes the whole stream, calls finish (which closes a pair's pipe) and appends the result line.
func send(asked job, output io.Writer, finish func() error) error {
	pattern := make([]byte, asked.block+period)
	for i := range pattern {
		pattern[i] = byte(i)
	}
	var position uint64
	stream := func(until uint64) error {
		for position < until {
			begin := position % period
			count := until - position
			if count > asked.block {
				count = asked.block
			}
			written, err := output.Write(pattern[begin : begin+count])
			position += uint64(written)
			if err != nil {
				return fmt.Errorf("write after %d bytes: %w", position, err)
			}
		}
		return nil
	}
	ready := now()
	if err := stream(asked.warmup); err != nil {
		return err
	}
	began := now()
	if err := stream(asked.warmup + asked.bytes); err != nil {
		return err
	}
	if finish != nil {
		if err := finish(); err != nil {
			return fmt.Errorf("close the pipe: %w", err)
		}
	}
	return appendResult(asked.result, fmt.Sprintf("send bytes=%d ready_ns=%d began_ns=%d\n", position, ready, began))
}

// receive reads standard input to its end and appends the result line, also when the stream has the wrong length.
func receive(asked job, chosen way) error {
	block := make([]byte, asked.block)
	expected := asked.warmup + asked.bytes
	var received uint64
	var xor byte
	var ended int64
	ready := now()
	for {
		count, err := chosen.input.Read(block)
		xor ^= chosen.fold(block[:count])
		received += uint64(count)
		if ended == 0 && count > 0 && received >= expected {
			ended = now()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read after %d bytes: %w", received, err)
		}
	}
	if ended == 0 || received != expected {
		ended = now()
	}
	line := fmt.Sprintf("recv bytes=%d xor=%d ready_ns=%d ended_ns=%d\n", received, xor, ready, ended)
	if err := appendResult(asked.result, line); err != nil {
		return err
	}
	if received != expected {
		return fmt.Errorf("the input has %d bytes where %d were announced", received, expected)
	}
	return nil
}

// pair starts the child, sends the stream to its standard input, and waits for it even if sending failed.
func pair(asked job, chosen way) error {
	pipe, wait, err := chosen.start(asked.child)
	if err != nil {
		return fmt.Errorf("start %q: %w", asked.child[0], err)
	}
	sent := send(asked, pipe, pipe.Close)
	if sent != nil {
		pipe.Close() // its own error would hide the first one
	}
	ended := wait()
	if sent == nil && ended != nil {
		return fmt.Errorf("the child %q: %w", asked.child[0], ended)
	}
	return sent
}

// appendResult adds one line to the result file in one write, since the two ends of a pair share it.
func appendResult(path, line string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// now is CLOCK_MONOTONIC in nanoseconds; package time gives no absolute value of it. See clock_gettime(2).
func now() int64 {
	const clockMonotonic = 1
	var time syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&time)), 0)
	return time.Nano()
}

// --- idiomatic ---

// startCommand starts the child by package os/exec. Our end of its pipe is non-blocking, and the runtime polls it.
func startCommand(child []string) (io.WriteCloser, func() error, error) {
	command := exec.Command(child[0], child[1:]...)
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := command.Start(); err != nil {
		return nil, nil, err
	}
	return pipe, command.Wait, nil
}

// foldBytes is the simple loop over bytes.
func foldBytes(block []byte) byte {
	var xor byte
	for _, b := range block {
		xor ^= b
	}
	return xor
}

// --- tuned ---

// descriptor reads and writes by system calls that bypass the scheduler of the runtime: the only goroutine of
// this program may block its thread, so that no other thread has to be woken to replace it.
type descriptor int

func (fd descriptor) Write(block []byte) (int, error) {
	done := 0
	for done < len(block) {
		count, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd),
			uintptr(unsafe.Pointer(&block[done])), uintptr(len(block)-done))
		if errno == 0 {
			done += int(count)
		} else if errno != syscall.EINTR {
			return done, errno
		}
	}
	return done, nil
}

func (fd descriptor) Read(block []byte) (int, error) {
	for {
		count, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd),
			uintptr(unsafe.Pointer(&block[0])), uintptr(len(block)))
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return 0, errno
		case count == 0:
			return 0, io.EOF
		}
		return int(count), nil
	}
}

func (fd descriptor) Close() error { return syscall.Close(int(fd)) }

// startProcess starts the child with a pipe of which both ends are blocking.
func startProcess(child []string) (io.WriteCloser, func() error, error) {
	path, err := exec.LookPath(child[0])
	if err != nil {
		return nil, nil, err
	}
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	input := os.NewFile(uintptr(ends[0]), "pipe")
	process, err := os.StartProcess(path, child, &os.ProcAttr{Files: []*os.File{input, os.Stdout, os.Stderr}})
	input.Close()
	if err != nil {
		syscall.Close(ends[1])
		return nil, nil, err
	}
	wait := func() error {
		state, err := process.Wait()
		if err == nil && !state.Success() {
			err = errors.New(state.String())
		}
		return err
	}
	return descriptor(ends[1]), wait, nil
}

// foldWords computes the XOR eight words at a time and reduces it to a byte at the end; the remaining bytes one by one.
func foldWords(block []byte) byte {
	if len(block) < 8 {
		return foldBytes(block)
	}
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&block[0])), len(block)/8)
	rest := block[len(words)*8:]
	var a, b, c, d uint64
	for len(words) >= 8 {
		eight := words[:8:8]
		a ^= eight[0] ^ eight[4]
		b ^= eight[1] ^ eight[5]
		c ^= eight[2] ^ eight[6]
		d ^= eight[3] ^ eight[7]
		words = words[8:]
	}
	for _, word := range words {
		a ^= word
	}
	a ^= b ^ c ^ d
	a ^= a >> 32
	a ^= a >> 16
	a ^= a >> 8
	return byte(a) ^ foldBytes(rest)
}
