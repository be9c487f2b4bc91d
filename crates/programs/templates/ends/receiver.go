// {title}
// {command}
// Its arguments: COUNT (1 if not given; 0: not known), which is how many messages it expects,
// and the NAME at which it meets {other}.
package main

import "bytes"
import "fmt"
import "os"
import "strconv"
import "sync"
import "sync/atomic"
import "time"
@unshared import "net"
@unshared import "path/filepath"

const senders = {senders}
@links const receivers = {receivers}

@@both
@@mechanism

// The number of the next message of each sender, by its id.
type seen map[uint64]uint64

// Messages of a sender follow one another. False: it has come before.
func (due seen) check(word uint64) (bool, error) {
	id, number := word>>40, word&numbers
@manysenders 	if size < 8 {
@manysenders 		return true, nil // there is no id in it
@manysenders 	}
@onesender 	if size < 8 {
@onesender 		id = 0 // there is no whole id in it
@onesender 	}
@ordered 	next, isKnown := due[id]
@file @each 	next, isKnown := due[id]
	switch {
@onesender @each 	case !isKnown && number > 0 && len(due) > 0: // a receiver before this one may have taken some of the first sender's
@onesender @each 		return false, fmt.Errorf("message %d came first", number)
@reply 	case isKnown && (number+1)%numbers == next:
@reply 		return false, nil // the client sends it again if it gets no reply
@compete @ordered 	case isKnown && number < next && size >= 8: // the other receivers take those between
@each 	case isKnown && number != next && (size >= 8 || number > 0): // without an id, the first number tells that it is a new sender
@each 		return false, fmt.Errorf("message %d came where %d was due", number, next)
@compete @ordered 		return false, fmt.Errorf("message %d came where %d was due", number, next)
	}
	due[id] = (number + 1) % numbers
	return true, nil
}

@unshared // One receiver has a link. The kernel gives this abstract name back when its owner dies.
@unshared func claim(first string) string {
@unshared 	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(10 * time.Millisecond) {
@onereceiver 		for _, name := range []string{first} {
@links 		for number := range receivers {
@links 			name := linkName(first, number)
@unshared 			path, err := filepath.Abs(name)
@unshared 			check(name, err)
@unshared 			path = "@hosepipe:" + path[max(0, len(path)-90):] // of at most 107 bytes
@unshared 			if _, err := net.ListenPacket("unixgram", path); err == nil {
@unshared 				return name
@unshared 			}
@unshared 		}
@unshared 	}
@onereceiver 	check(first, fmt.Errorf("another receiver is there"))
@links 	check(first, fmt.Errorf("%d other receivers are there", receivers))
@unshared 	return ""
@unshared }
@unshared 
// The program ends once: the one that has locked this never unlocks it.
var ending sync.Mutex

func check(name string, err error) {
	if err != nil {
		ending.Lock()
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(count int64, name string) {
@unshared 	name = claim(name)
	link, err := openReceiver(name)
	check(name, err)
	var got atomic.Int64
	var began, ended time.Time
	finish := func() {
		ending.Lock()
		if err := link.finish(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		ns := float64(ended.Sub(began).Nanoseconds()) / float64(max(got.Load(), 1))
		fmt.Printf("%.1f ns per {what}: %d of %d bytes, all as sent\n", ns, got.Load(), size)
		os.Exit(0)
	}
	go func() { // a sender that was killed sends no end mark: done after COUNT messages, and then none for three seconds
		for last := int64(-1); count == 0 || last < count || last != got.Load(); time.Sleep(3 * time.Second) {
			last = got.Load()
		}
		finish()
	}()
	message, due, marks := make([]byte, size), seen{}, 0
	for marks < senders {
		check(name, link.receive(message))
		word, isWhole := wordOf(message)
		if !isWhole {
			check(name, fmt.Errorf("a message arrived altered"))
		}
		if word == 1<<(8*min(size, 8))-1 {
@connected 			link.end()
			marks++
@connected @manysenders 			marks -= link.takeWithdrawn()
			continue
		}
		isNew, err := due.check(word)
		check(name, err)
@reply 		check(name, link.sendReply(message))
		if isNew {
			// The clock is read where this may be the last one.
			if number := got.Load() + 1; number == 1 || number >= count {
				ended = time.Now()
			}
			if got.Load() == 0 {
				began = ended
			}
			got.Add(1)
		}
	}
	if got.Load() < count {
		ended = time.Now()
	}
	finish()
}

func main() {
	count, name := "1", "{NAME}"
	if len(os.Args) > 1 {
		count = os.Args[1]
	}
	if len(os.Args) > 2 {
		name = os.Args[min(len(os.Args)-1, 3)] // it takes the arguments of {other} as well: COUNT RATE NAME
	}
	messages, err := strconv.ParseUint(count, 10, 63)
	if err != nil {
		fmt.Fprintf(os.Stderr, "COUNT is a number of at least 0, not %s\n", count)
		os.Exit(2)
	}
	run(int64(messages), name)
}
