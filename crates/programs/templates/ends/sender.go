// {title}
// {command}
// Its arguments: COUNT (1 if not given), RATE ({what}s in a second, {rate} if not given; 0: full speed),
// and the NAME at which it meets {other}.
package main

import "fmt"
import "math/rand/v2"
import "os"
import "strconv"
import "time"
@reply import "bytes"
@reply import "errors"

@manyreceivers const receivers = {receivers}

@@both
@@mechanism

// A message is one word again and again, the last copy cut off: its number in 40 bits, and the 24 bits of the sender's id.
func fill(message []byte, id, number uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], number%numbers|id<<40)
	for at := 0; at < size; at += 8 {
		copy(message[at:], word[:])
	}
}

@reply // Whether this is a reply to a request before this one, which was sent twice because a server had died.
@reply func isLate(reply, request []byte) bool {
@reply 	got, isWhole := wordOf(reply)
@reply 	sent, _ := wordOf(request)
@reply 	return isWhole && (size < 8 || got>>40 != sent>>40 || got < sent)
@reply }
@reply 
@reply // Sends a request until its reply comes: a server that died has taken the request, or its reply, with it.
@reply func ask(link *sender, request, reply []byte) error {
@reply 	for {
@reply 		if err := link.send(request); err != nil {
@reply 			return err
@reply 		}
@reply 		for {
@reply 			came, err := link.receiveReply(reply)
@reply 			if err != nil {
@reply 				return err
@reply 			}
@reply 			if !came {
@reply 				break
@reply 			}
@reply 			if bytes.Equal(reply, request) {
@reply 				return nil
@reply 			}
@reply 			if !isLate(reply, request) {
@reply 				return errors.New("a reply arrived altered")
@reply 			}
@reply 		}
@reply 	}
@reply }
@reply 
func check(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(count, rate uint64, name string) time.Duration {
@onelink 	link, err := openSender(name)
@onelink 	check(name, err)
@links 	var links [receivers]*sender
@links 	for number := range links {
@links 		var err error
@links 		links[number], err = openSender(linkName(name, number))
@links 		check(name, err)
@links 	}
	id := rand.Uint64N(1<<24-2) + 1
	message := make([]byte, size)
@reply 	reply := make([]byte, size)
	began := time.Now()
	for number := range count {
		if rate > 0 {
			// Counted from the begin: one that is late begins at once.
			due := began.Add(time.Duration(float64(number) / float64(rate) * 1e9))
@watched 			// In a long pause it looks whether the other ends are there: the first send to one that died may succeed (tcp).
@watched 			for time.Until(due) > 250*time.Millisecond {
@watched 				time.Sleep(250 * time.Millisecond)
@watched @onelink 				check(name, link.reopenIfGone())
@watched @links 				for _, link := range links {
@watched @links 					check(name, link.reopenIfGone())
@watched @links 				}
@watched 			}
			time.Sleep(time.Until(due))
		}
		fill(message, id, number)
@stream @onelink 		check(name, link.send(message))
@compete @links 		check(name, links[number%receivers].send(message)) // in turn
@broadcast 		for _, link := range links {
@broadcast 			check(name, link.send(message))
@broadcast 		}
@reply 		check(name, ask(link, message, reply))
	}
	took := time.Since(began)
	mark := make([]byte, size)
	for at := range mark {
		mark[at] = 0xFF
	}
@shared 	for range receivers - 1 { // each receiver takes one
@shared 		check(name, link.send(mark))
@shared 	}
@onelink 	check(name, link.finish(mark))
@links 	for _, link := range links {
@links 		check(name, link.finish(mark))
@links 	}
	return took
}

func main() {
	count, rate, name := "1", "{rate}", "{NAME}"
	for at, argument := range []*string{&count, &rate, &name} {
		if len(os.Args) > at+1 {
			*argument = os.Args[at+1]
		}
	}
	messages, err := strconv.ParseUint(count, 10, 63)
	if err != nil || messages == 0 {
		fmt.Fprintf(os.Stderr, "COUNT is a number of at least 1, not %s\n", count)
		os.Exit(2)
	}
	perSecond, err := strconv.ParseUint(rate, 10, 64)
	if err != nil || perSecond > 1000000000 {
		fmt.Fprintf(os.Stderr, "RATE is a number from 0 to 1000000000, not %s\n", rate)
		os.Exit(2)
	}
	took := run(messages, perSecond, name)
	ns := float64(took.Nanoseconds()) / float64(messages)
	fmt.Printf("%.1f ns per {what}: %d of %d bytes, all as sent\n", ns, messages, size)
}
