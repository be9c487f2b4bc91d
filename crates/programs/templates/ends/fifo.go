import "errors"
@receiver import "io"
@sender @reply import "io"
import "os"
import "syscall"
@sender import "time"
@unread import "unsafe"

// Both ends make the FIFO, so they can start in any order. open(2) waits for the other end.
func openFifo(name string, how int) (*os.File, error) {
	for {
		err := syscall.Mkfifo(name, 0600)
		if err != nil && err != syscall.EEXIST {
			return nil, err
		}
		if found, err := os.Stat(name); err == nil && found.Mode()&os.ModeNamedPipe == 0 {
			return nil, errors.New("there is another file")
		}
		file, err := os.OpenFile(name, how, 0)
		if !errors.Is(err, os.ErrNotExist) { // else it was removed in this moment
			return file, err
		}
	}
}

@unread // Bytes in the FIFO.
@unread func unread(file *os.File) (bytes int32) {
@unread 	const fionread = 0x541B
@unread 	connection, err := file.SyscallConn()
@unread 	if err == nil {
@unread 		connection.Control(func(fd uintptr) {
@unread 			syscall.Syscall(syscall.SYS_IOCTL, fd, fionread, uintptr(unsafe.Pointer(&bytes)))
@unread 		})
@unread 	}
@unread 	return bytes
@unread }
@unread 
@sender type sender struct {
@sender 	name string
@sender 	file *os.File
@reply @sender 	back *os.File
@reply @sender 	// A reply came: an end of file means that the server has gone.
@reply @sender 	isReplied bool
@sender }
@sender 
@sender func openSender(name string) (*sender, error) {
@sender 	file, err := openFifo(name, os.O_WRONLY)
@sender 	return &sender{name: name, file: file}, err
@sender }
@sender 
@sender // Up to 4096 bytes (PIPE_BUF) a message is written whole or not at all.
@sender func (s *sender) send(message []byte) error {
@sender 	for {
@sender 		_, err := s.file.Write(message)
@sender 		if !errors.Is(err, syscall.EPIPE) {
@sender 			return err
@sender 		}
@sender 		if err = s.openAgain(); err != nil {
@sender 			return err
@sender 		}
@sender 	}
@sender }
@sender 
@sender // Why it cannot be opened once more: no receiver has it open (ENXIO), or has removed it.
@sender func (s *sender) whyGone() error {
@sender 	writer, err := os.OpenFile(s.name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
@sender 	writer.Close()
@sender 	return err
@sender }
@sender 
@sender func (s *sender) reopenIfGone() error {
@sender 	if s.whyGone() != nil {
@sender 		return s.openAgain()
@sender 	}
@sender 	return nil
@sender }
@sender 
@sender // Waits for the next receiver. What is unread stays for it, as the old descriptor is closed after that.
@sender func (s *sender) openAgain() (err error) {
@onepeer @sender 	fmt.Fprintln(os.Stderr, "the receiver has gone: waiting for another")
@manypeers @sender 	fmt.Fprintln(os.Stderr, "no receiver is there now: waiting for one") // the others may be done, or not there yet
@sender 	old := s.file
@large @sender 	old.Close() // part of a message may be unread: it must not stay
@sender 	s.file, err = openFifo(s.name, os.O_WRONLY)
@sender 	old.Close()
@sender 	return err
@sender }
@sender 
@reply @sender // False: the server has gone, or no reply came for a second.
@reply @sender func (s *sender) receiveReply(reply []byte) (came bool, err error) {
@reply @sender 	if s.back == nil {
@reply @sender 		s.isReplied = false
@reply @sender 		if s.back, err = openFifo(s.name+".back", os.O_RDONLY|syscall.O_NONBLOCK); err != nil {
@reply @sender 			return false, err
@reply @sender 		}
@reply @sender 	}
@reply @sender 	for range 1000 {
@reply @sender 		if _, err = io.ReadFull(s.back, reply); err == nil {
@reply @sender 			s.isReplied = true
@reply @sender 			return true, nil
@reply @sender 		}
@reply @sender 		if s.isReplied || err != io.EOF {
@reply @sender 			break
@reply @sender 		}
@reply @sender 		time.Sleep(time.Millisecond) // the server opens it at its first reply
@reply @sender 	}
@reply @sender 	s.back.Close()
@reply @sender 	s.back = nil
@reply @sender 	return false, nil
@reply @sender }
@reply @sender 
@sender // What is unread dies with this end, so it stays until the end mark is taken.
@sender func (s *sender) finish(mark []byte) error {
@sender 	err := s.send(mark)
@sender 	// The receiver removes the FIFO when it has the end mark.
@sender 	for err == nil && s.isThere() {
@sender 		absent, unread := s.whyGone(), unread(s.file)
@sender 		switch {
@shared @sender 		case unread == 0:
@shared @onesender @sender 			return os.Remove(s.name)
@shared @manysenders @sender 			return nil
@sender 		case errors.Is(absent, syscall.ENXIO):
@sender 			err = s.openAgain()
@sender 			if err == nil && unread == 0 {
@sender 				err = s.send(mark) // the receiver that died had taken it
@sender 			}
@manysenders @unshared @sender 		case unread == 0:
@manysenders @unshared @sender 			return nil
@sender 		default:
@sender 			time.Sleep(time.Millisecond)
@sender 		}
@sender 	}
@reply @sender 	os.Remove(s.name + ".back")
@sender 	return err
@sender }
@sender 
@sender func (s *sender) isThere() bool {
@sender 	found, err := os.Stat(s.name)
@sender 	own, _ := s.file.Stat()
@sender 	return err == nil && os.SameFile(found, own)
@sender }
@sender 
@receiver type receiver struct {
@receiver 	name string
@receiver 	file *os.File
@reply @receiver 	back *os.File
@receiver }
@receiver 
@receiver func openReceiver(name string) (*receiver, error) {
@receiver 	file, err := openFifo(name, os.O_RDONLY)
@receiver 	return &receiver{name: name, file: file}, err
@receiver }
@receiver 
@receiver // Up to 4096 bytes (PIPE_BUF) a message comes whole.
@receiver func (r *receiver) receive(message []byte) error {
@receiver 	for {
@receiver 		_, err := io.ReadFull(r.file, message)
@receiver 		if err != io.EOF && err != io.ErrUnexpectedEOF {
@receiver 			return err
@receiver 		}
@onepeer @receiver 		fmt.Fprintln(os.Stderr, "the sender has gone: waiting for another")
@manypeers @receiver 		fmt.Fprintln(os.Stderr, "no sender is there now: waiting for one") // the others may be done, or not there yet
@receiver 		// Opened again before the old descriptor is closed: what is unread stays.
@receiver 		old := r.file
@receiver 		if r.file, err = openFifo(r.name, os.O_RDONLY); err != nil {
@receiver 			return err
@receiver 		}
@receiver 		old.Close()
@receiver 	}
@receiver }
@receiver 
@reply @receiver // A client that died gets no reply.
@reply @receiver func (r *receiver) sendReply(reply []byte) (err error) {
@reply @receiver 	if r.back == nil {
@reply @receiver 		if r.back, err = openFifo(r.name+".back", os.O_WRONLY); err != nil {
@reply @receiver 			return err
@reply @receiver 		}
@reply @receiver 	}
@reply @receiver 	if _, err = r.back.Write(reply); errors.Is(err, syscall.EPIPE) {
@reply @receiver 		r.back.Close()
@reply @receiver 		r.back, err = nil, nil
@reply @receiver 	}
@reply @receiver 	return err
@reply @receiver }
@reply @receiver 
@receiver func (r *receiver) finish() error {
@shared @receiver 	return nil
@unshared @receiver 	if unread(r.file) > 0 {
@unshared @receiver 		return nil // there is more, of the next sender
@unshared @receiver 	}
@unshared @receiver 	return os.Remove(r.name)
@receiver }
