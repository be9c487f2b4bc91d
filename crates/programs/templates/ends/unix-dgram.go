import "errors"
import "fmt"
import "net"
import "os"
@sender import "path/filepath"
@sender import "syscall"
@sender import "time"
@sender import "unsafe"

func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: name, Net: "unixgram"}
}

@sender // One call, one message. It waits while the queue is full (net.unix.max_dgram_qlen).
@sender type sender struct {
@sender 	*net.UnixConn
@sender 	name string
@reply @sender 	back *net.UnixConn
@sender }
@sender 
@sender // Waits for a receiver.
@sender func connect(name string) (*net.UnixConn, error) {
@sender 	for {
@sender 		connection, err := net.DialUnix("unixgram", nil, address(name))
@sender 		if found, absent := os.Stat(name); err != nil && absent == nil && found.Mode()&os.ModeSocket == 0 {
@sender 			return nil, errors.New("there is another file")
@sender 		}
@sender 		if _, absent := os.Stat(filepath.Dir(name)); err != nil && absent != nil {
@sender 			return nil, absent // no end makes a folder
@sender 		}
@sender 		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
@sender 			return connection, err
@sender 		}
@sender 		time.Sleep(10 * time.Millisecond)
@sender 	}
@sender }
@sender 
@sender func openSender(name string) (*sender, error) {
@reply @sender 	if err := takeName(name + ".back"); err != nil {
@reply @sender 		return nil, err
@reply @sender 	}
@reply @sender 	back, err := net.ListenUnixgram("unixgram", address(name+".back"))
@reply @sender 	if err != nil {
@reply @sender 		return nil, err
@reply @sender 	}
@sender 	connection, err := connect(name)
@stream @sender 	return &sender{connection, name}, err
@reply @sender 	return &sender{connection, name, back}, err
@sender }
@sender 
@sender func (s *sender) connectAgain() (err error) {
@sender 	fmt.Fprintln(os.Stderr, "the receiver has gone: waiting for another")
@sender 	s.Close()
@sender 	s.UnixConn, err = connect(s.name)
@sender 	return err
@sender }
@sender 
@sender // A datagram without bytes is no message, and asks whether the receiver is alive.
@sender func (s *sender) reopenIfGone() error {
@sender 	if _, err := s.Write(nil); err != nil && !errors.Is(err, syscall.EAGAIN) {
@sender 		return s.connectAgain()
@sender 	}
@sender 	return nil
@sender }
@sender 
@sender func (s *sender) send(message []byte) error {
@sender 	for {
@sender 		_, err := s.Write(message)
@sender 		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ENOTCONN) {
@sender 			return err
@sender 		}
@sender 		if err = s.connectAgain(); err != nil {
@sender 			return err
@sender 		}
@sender 	}
@sender }
@sender 
@reply @sender // False: no reply came for a second.
@reply @sender func (s *sender) receiveReply(reply []byte) (bool, error) {
@reply @sender 	s.back.SetReadDeadline(time.Now().Add(time.Second))
@reply @sender 	_, err := s.back.Read(reply)
@reply @sender 	if errors.Is(err, os.ErrDeadlineExceeded) {
@reply @sender 		return false, nil
@reply @sender 	}
@reply @sender 	return err == nil, err
@reply @sender }
@reply @sender 
@sender // Waits until the end mark is taken; it may be dropped with a receiver that dies.
@sender func (s *sender) finish(mark []byte) error {
@sender 	err := s.send(mark)
@sender 	for err == nil {
@sender 		unread := s.unread()
@sender 		probe, absent := net.DialUnix("unixgram", nil, address(s.name))
@sender 		if absent == nil {
@sender 			probe.Close()
@sender 		}
@sender 		if errors.Is(absent, syscall.ECONNREFUSED) {
@sender 			if err = s.connectAgain(); err == nil {
@sender 				err = s.send(mark)
@sender 			}
@sender 		} else if absent != nil || unread == 0 {
@sender 			break // taken; or the receiver has ended, and removed its name
@sender 		}
@sender 		time.Sleep(time.Millisecond)
@sender 	}
@reply @sender 	os.Remove(s.name + ".back")
@sender 	return err
@sender }
@sender 
@sender func (s *sender) unread() (bytes int32) {
@sender 	const outQueue = 0x5411 // SIOCOUTQ
@sender 	connection, err := s.SyscallConn()
@sender 	if err == nil {
@sender 		connection.Control(func(fd uintptr) {
@sender 			syscall.Syscall(syscall.SYS_IOCTL, fd, outQueue, uintptr(unsafe.Pointer(&bytes)))
@sender 		})
@sender 	}
@sender 	return bytes
@sender }
@receiver type receiver struct {
@receiver 	*net.UnixConn
@receiver 	name string
@reply @receiver 	back *net.UnixConn
@receiver }
@receiver 
@receiver func openReceiver(name string) (*receiver, error) {
@receiver 	if err := takeName(name); err != nil {
@receiver 		return nil, err
@receiver 	}
@receiver 	connection, err := net.ListenUnixgram("unixgram", address(name))
@receiver 	return &receiver{UnixConn: connection, name: name}, err
@receiver }
@receiver 
@receiver func (r *receiver) receive(message []byte) error {
@receiver 	for {
@receiver 		bytes, err := r.Read(message)
@receiver 		if err == nil && bytes == 0 {
@receiver 			continue // a sender asked whether a receiver is there
@receiver 		}
@receiver 		if err == nil && bytes != size {
@receiver 			return fmt.Errorf("a message of %d bytes arrived", bytes)
@receiver 		}
@receiver 		return err
@receiver 	}
@receiver }
@receiver 
@reply @receiver // A client that died gets no reply.
@reply @receiver func (r *receiver) sendReply(reply []byte) error {
@reply @receiver 	for range 2 {
@reply @receiver 		if r.back == nil {
@reply @receiver 			r.back, _ = net.DialUnix("unixgram", nil, address(r.name+".back"))
@reply @receiver 		}
@reply @receiver 		if r.back != nil {
@reply @receiver 			if _, err := r.back.Write(reply); err == nil {
@reply @receiver 				break
@reply @receiver 			}
@reply @receiver 			r.back.Close() // there may be another client
@reply @receiver 			r.back = nil
@reply @receiver 		}
@reply @receiver 	}
@reply @receiver 	return nil
@reply @receiver }
@reply @receiver 
@receiver func (r *receiver) finish() error {
@receiver 	return os.Remove(r.name)
@receiver }
