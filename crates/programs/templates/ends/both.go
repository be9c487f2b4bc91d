import "encoding/binary"
@receives import "bytes"
@binds import "errors"
@binds import "net"
@binds import "os/signal"
@binds import "syscall"

const size = {bytes}

// Messages are numbered modulo this: none has 0xFF in each byte, as the end mark has.
const numbers = 1<<(8*min(size, 5)) - 1

@receives // The word of a message, and whether all of it is that word again and again.
@receives func wordOf(message []byte) (word uint64, isWhole bool) {
@receives 	var first [8]byte
@receives 	copy(first[:], message)
@receives 	return binary.LittleEndian.Uint64(first[:]), bytes.Equal(message[min(size, 8):], message[:max(size, 8)-8])
@receives }
@receives 
@binds // Makes a socket's name free if the program that bound it has died, and removes it when a signal ends this program.
@binds func takeName(name string) error {
@binds 	found, err := os.Lstat(name)
@binds 	connection, err2 := net.Dial("unix", name)
@binds 	switch {
@binds 	case errors.Is(err, os.ErrNotExist):
@binds 	case err == nil && found.Mode()&os.ModeSocket != 0 && errors.Is(err2, syscall.ECONNREFUSED):
@binds 		if err := os.Remove(name); err != nil {
@binds 			return err
@binds 		}
@binds 	default:
@binds 		if err2 == nil {
@binds 			connection.Close()
@binds 		}
@binds 		return errors.New("there is another file, or another program uses it")
@binds 	}
@binds 	signals := make(chan os.Signal, 1)
@binds 	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
@binds 	go func() {
@binds 		number := <-signals
@binds 		os.Remove(name)
@binds 		os.Exit(128 + int(number.(syscall.Signal)))
@binds 	}()
@binds 	return nil
@binds }
@binds 
@links // Each receiver has a link of its own.
@links func linkName(name string, number int) string {
@links @path 	return name + "." + strconv.Itoa(number)
@links @numbered 	first, _ := strconv.Atoi(name)
@links @numbered 	return strconv.Itoa(first + number)
@links }

