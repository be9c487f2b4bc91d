import "errors"
import "fmt"
import "io"
import "net"
import "os"
@tcp import "strconv"
@path @sender import "path/filepath"
import "syscall"
@sender import "time"
@receiver @manysenders import "time"
@receiver @manysenders import "unsafe"

@unixstream const network = "unix"
@seqpacket const network = "unixpacket"
@tcp const network = "tcp"

func address(name string) string {
@path 	return name
@tcp 	if port, err := strconv.ParseUint(name, 10, 16); err != nil || port == 0 {
@tcp 		fmt.Fprintf(os.Stderr, "NAME is a port, a number from 1 to 65535, not %s\n", name)
@tcp 		os.Exit(2)
@tcp 	}
@tcp 	return "127.0.0.1:" + name
}

func isDeath(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

@sender type sender struct {
@sender 	net.Conn
@sender 	name string
@sender }
@sender 
@sender // Waits for the receiver.
@sender func openSender(name string) (*sender, error) {
@sender 	for {
@sender 		connection, err := net.Dial(network, address(name))
@tcp @sender 		if err == nil && connection.LocalAddr().String() == connection.RemoteAddr().String() {
@tcp @sender 			connection.Close() // it has met itself
@tcp @sender 			err = syscall.ECONNREFUSED
@tcp @sender 		}
@path @sender 		if found, absent := os.Stat(name); err != nil && absent == nil && found.Mode()&os.ModeSocket == 0 {
@path @sender 			return nil, errors.New("there is another file")
@path @sender 		}
@path @sender 		if _, absent := os.Stat(filepath.Dir(name)); err != nil && absent != nil {
@path @sender 			return nil, absent // no end makes a folder
@path @sender 		}
@sender 		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, os.ErrNotExist) {
@sender 			return &sender{connection, name}, err
@sender 		}
@sender 		time.Sleep(10 * time.Millisecond)
@sender 	}
@sender }
@sender 
@sender func (s *sender) openAgain() error {
@sender 	fmt.Fprintln(os.Stderr, "the receiver has gone: waiting for another")
@sender 	s.Close()
@sender 	next, err := openSender(s.name)
@sender 	if err == nil {
@sender 		*s = *next
@sender 	}
@sender 	return err
@sender }
@sender 
@sender // The receiver sends nothing now: what there is to read is its end.
@sender func (s *sender) reopenIfGone() error {
@sender 	s.SetReadDeadline(time.Now().Add(time.Millisecond))
@sender 	_, err := s.Read(make([]byte, 1))
@sender 	if s.SetReadDeadline(time.Time{}); errors.Is(err, os.ErrDeadlineExceeded) {
@sender 		return nil
@sender 	}
@sender 	return s.openAgain()
@sender }
@sender 
@sender // A message goes whole to one receiver.
@sender func (s *sender) send(message []byte) error {
@sender 	for {
@sender 		_, err := s.Write(message)
@sender 		if !isDeath(err) {
@sender 			return err
@sender 		}
@sender 		if err = s.openAgain(); err != nil {
@sender 			return err
@sender 		}
@sender 	}
@sender }
@sender 
@reply @sender // False: the server has gone.
@reply @sender func (s *sender) receiveReply(reply []byte) (bool, error) {
@reply @sender 	_, err := io.ReadFull(s, reply)
@reply @sender 	if isDeath(err) {
@reply @sender 		return false, s.openAgain()
@reply @sender 	}
@reply @sender 	return err == nil, err
@reply @sender }
@reply @sender 
@sender // The receiver answers the end mark by one byte; one that died before that has a successor.
@sender func (s *sender) finish(mark []byte) error {
@sender 	for {
@sender 		err := s.send(mark)
@sender 		if err != nil {
@sender 			return err
@sender 		}
@sender 		if end, ok := s.Conn.(interface{ CloseWrite() error }); ok {
@sender 			end.CloseWrite()
@sender 		}
@sender 		if _, err = io.ReadFull(s, make([]byte, 1)); !isDeath(err) {
@sender 			return err
@sender 		}
@sender 		if err = s.openAgain(); err != nil {
@sender 			return err
@sender 		}
@sender 	}
@sender }
@receiver // A message.
@seqpacket @receiver // A packet of another length is an error: it is not cut off to one.
@receiver func readWhole(from net.Conn, message []byte) error {
@seqpacket @receiver 	bytes, _, flags, _, err := from.(*net.UnixConn).ReadMsgUnix(message, nil)
@seqpacket @receiver 	if err == nil && (bytes != size || flags&syscall.MSG_TRUNC != 0) {
@seqpacket @receiver 		err = errors.New("a message of another length came")
@seqpacket @receiver 	}
@unixstream @receiver 	_, err := io.ReadFull(from, message)
@tcp @receiver 	_, err := io.ReadFull(from, message)
@receiver 	return err
@receiver }
@receiver 
@receiver func listen(name string) (net.Listener, error) {
@path @receiver 	if err := takeName(name); err != nil {
@path @receiver 		return nil, err
@path @receiver 	}
@receiver 	return net.Listen(network, address(name)) // a path is removed where it is closed
@receiver }
@receiver 
@receiver @onesender type receiver struct {
@receiver @onesender 	listener   net.Listener
@receiver @onesender 	connection net.Conn
@receiver @onesender 	// The connection has sent a message: others only asked whether a receiver is there.
@receiver @onesender 	isSender bool
@receiver @onesender }
@receiver @onesender 
@receiver @onesender func openReceiver(name string) (*receiver, error) {
@receiver @onesender 	listener, err := listen(name)
@receiver @onesender 	return &receiver{listener: listener}, err
@receiver @onesender }
@receiver @onesender 
@receiver @onesender // A message that is cut off by a death is dropped.
@receiver @onesender func (r *receiver) receive(message []byte) (err error) {
@receiver @onesender 	for {
@receiver @onesender 		if r.connection == nil {
@receiver @onesender 			if r.connection, err = r.listener.Accept(); err != nil {
@receiver @onesender 				return err
@receiver @onesender 			}
@receiver @onesender 		}
@receiver @onesender 		if err = readWhole(r.connection, message); !isDeath(err) {
@receiver @onesender 			r.isSender = true
@receiver @onesender 			return err
@receiver @onesender 		}
@receiver @onesender 		r.connection.Close()
@receiver @onesender 		if r.isSender {
@receiver @onesender 			fmt.Fprintln(os.Stderr, "the sender has gone: waiting for another")
@receiver @onesender 		}
@receiver @onesender 		r.connection, r.isSender = nil, false
@receiver @onesender 	}
@receiver @onesender }
@receiver @onesender 
@reply @receiver @onesender // A client that died gets no reply.
@reply @receiver @onesender func (r *receiver) sendReply(reply []byte) error {
@reply @receiver @onesender 	if _, err := r.connection.Write(reply); !isDeath(err) {
@reply @receiver @onesender 		return err
@reply @receiver @onesender 	}
@reply @receiver @onesender 	return nil
@reply @receiver @onesender }
@reply @receiver @onesender 
@receiver @onesender // Tells the sender that its end mark was taken.
@receiver @onesender func (r *receiver) end() {
@receiver @onesender 	r.connection.Write([]byte{'\n'})
@receiver @onesender }
@receiver @onesender 
@receiver @onesender func (r *receiver) finish() error {
@receiver @onesender 	return r.listener.Close()
@receiver @onesender }
@receiver @manysenders type connection struct {
@receiver @manysenders 	net.Conn
@receiver @manysenders 	// What was read is taken; true: it was the end mark.
@receiver @manysenders 	taken chan bool
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders // A message; nil: the sender has gone, perhaps after its end mark.
@receiver @manysenders type arrival struct {
@receiver @manysenders 	from    *connection
@receiver @manysenders 	message []byte
@receiver @manysenders 	isEnded bool
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders type receiver struct {
@receiver @manysenders 	listener  net.Listener
@receiver @manysenders 	arrivals  chan arrival
@receiver @manysenders 	current   *connection
@receiver @manysenders 	ended     []*connection
@receiver @manysenders 	withdrawn int
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders func openReceiver(name string) (*receiver, error) {
@receiver @manysenders 	listener, err := listen(name)
@receiver @manysenders 	r := &receiver{listener: listener, arrivals: make(chan arrival)}
@receiver @manysenders 	go func() {
@receiver @manysenders 		for {
@receiver @manysenders 			next, err := listener.Accept()
@receiver @manysenders 			if err != nil {
@receiver @manysenders 				return
@receiver @manysenders 			}
@receiver @manysenders 			go r.read(&connection{next, make(chan bool)})
@receiver @manysenders 		}
@receiver @manysenders 	}()
@receiver @manysenders 	return r, err
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders // One goroutine for each sender. A message that is cut off by a death is dropped.
@receiver @manysenders func (r *receiver) read(c *connection) {
@receiver @manysenders 	message, isSender, isEnded := make([]byte, size), false, false
@receiver @manysenders 	for !isEnded {
@receiver @manysenders 		if err := readWhole(c.Conn, message); isDeath(err) {
@receiver @manysenders 			break
@receiver @manysenders 		} else if err != nil {
@receiver @manysenders 			check(c.LocalAddr().String(), err)
@receiver @manysenders 		}
@receiver @manysenders 		isSender = true
@receiver @manysenders 		r.arrivals <- arrival{c, message, false}
@receiver @manysenders 		isEnded = <-c.taken
@receiver @manysenders 	}
@receiver @manysenders 	for isEnded && !c.isDead() {
@receiver @manysenders 		time.Sleep(20 * time.Millisecond)
@receiver @manysenders 	}
@receiver @manysenders 	if isSender { // others only asked whether a receiver is there
@receiver @manysenders 		r.arrivals <- arrival{c, nil, isEnded}
@receiver @manysenders 	}
@receiver @manysenders 	c.Close()
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders // Whether the other end is closed in both directions.
@receiver @manysenders func (c *connection) isDead() bool {
@receiver @manysenders 	const hangUp = 16 // POLLHUP, which comes without being asked for
@receiver @manysenders 	entry := struct {
@receiver @manysenders 		fd             int32
@receiver @manysenders 		events, result int16
@receiver @manysenders 	}{}
@receiver @manysenders 	var now syscall.Timespec
@receiver @manysenders 	raw, err := c.Conn.(syscall.Conn).SyscallConn()
@receiver @manysenders 	if err == nil {
@receiver @manysenders 		raw.Control(func(fd uintptr) {
@receiver @manysenders 			entry.fd = int32(fd)
@receiver @manysenders 			syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&entry)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
@receiver @manysenders 		})
@receiver @manysenders 	}
@receiver @manysenders 	return entry.result&hangUp != 0
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders func (r *receiver) receive(message []byte) error {
@receiver @manysenders 	if r.current != nil {
@receiver @manysenders 		r.current.taken <- false
@receiver @manysenders 		r.current = nil
@receiver @manysenders 	}
@receiver @manysenders 	for {
@receiver @manysenders 		next := <-r.arrivals
@receiver @manysenders 		if next.message != nil {
@receiver @manysenders 			copy(message, next.message)
@receiver @manysenders 			r.current = next.from
@receiver @manysenders 			return nil
@receiver @manysenders 		}
@receiver @manysenders 		fmt.Fprintln(os.Stderr, "the sender has gone: waiting for another")
@receiver @manysenders 		if next.isEnded {
@receiver @manysenders 			r.withdrawn++
@receiver @manysenders 		}
@receiver @manysenders 	}
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders func (r *receiver) end() {
@receiver @manysenders 	r.current.taken <- true
@receiver @manysenders 	r.ended = append(r.ended, r.current)
@receiver @manysenders 	r.current = nil
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders // How many senders died after their end marks, and before they were answered.
@receiver @manysenders func (r *receiver) takeWithdrawn() (count int) {
@receiver @manysenders 	count, r.withdrawn = r.withdrawn, 0
@receiver @manysenders 	return count
@receiver @manysenders }
@receiver @manysenders 
@receiver @manysenders // Answers the end marks: not before all have come, as a successor of this receiver would need them again.
@receiver @manysenders func (r *receiver) finish() error {
@receiver @manysenders 	for _, c := range r.ended {
@receiver @manysenders 		c.Write([]byte{'\n'})
@receiver @manysenders 	}
@receiver @manysenders 	return r.listener.Close()
@receiver @manysenders }
