import "errors"
import "fmt"
@sends import "math/rand/v2"
import "os"
import "path/filepath"
import "strings"
import "time"
@onesender @sends import "strconv"
@receives @compete import "syscall"
@locks import "syscall"

// A folder of messages, each a file of its own that is whole and on the disk once it has its name. They stay until they are received,
// also when both programs or the machine have ended meanwhile; so their number is bounded by the disk alone.
func makeFolder(folder string) error {
	err := os.Mkdir(folder, 0700)
	if found, absent := os.Stat(folder); absent == nil && found.IsDir() {
		return nil
	}
	if errors.Is(err, os.ErrExist) {
		return errors.New("there is another file")
	}
	return err
}

// The names of the messages in a folder, in their order.
func list(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "message.") {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// Removes a folder without messages, and the parts of messages in it, whose senders died.
func removeFolder(folder string) error {
	if names, err := list(folder); err != nil || len(names) > 0 {
		return err // there is another sender
	}
	parts, _ := filepath.Glob(filepath.Join(folder, "part.*"))
	for _, part := range parts {
		os.Remove(part)
	}
	return os.Remove(folder)
}

@sends type writer struct {
@sends 	folder string
@sends 	// On the disk a name is a part of its folder.
@sends 	folderFile *os.File
@sends 	id         uint32 // of this sender alone: two in containers may have the same process id
@onesender @sends 	next       uint64
@sends }
@sends 
@sends func openWriter(folder string) (*writer, error) {
@sends 	if err := makeFolder(folder); err != nil {
@sends 		return nil, err
@sends 	}
@sends 	parent, err := os.Open(folder + "/..")
@sends 	if err != nil {
@sends 		return nil, err
@sends 	}
@sends 	defer parent.Close()
@sends 	if err := parent.Sync(); err != nil { // the name of the folder itself has to be on the disk, too
@sends 		return nil, err
@sends 	}
@sends 	file, err := os.Open(folder)
@sends 	w := &writer{folder: folder, folderFile: file, id: rand.Uint32()}
@onesender @sends 	if names, _ := list(folder); len(names) > 0 { // after the messages of a sender that died
@onesender @sends 		last, _ := strconv.ParseUint(strings.Split(names[len(names)-1], ".")[1], 10, 64)
@onesender @sends 		w.next = last + 1
@onesender @sends 	}
@sends 	return w, err
@sends }
@sends 
@sends func (w *writer) send(message []byte) error {
@sends 	for {
@sends 		err := w.put(message)
@sends 		if !errors.Is(err, os.ErrNotExist) {
@sends 			return err
@sends 		}
@sends 		next, err := openWriter(w.folder) // a receiver that was done has removed the folder
@sends 		if err != nil {
@sends 			return err
@sends 		}
@sends 		w.folderFile.Close()
@sends 		*w = *next
@sends 	}
@sends }
@sends 
@sends func (w *writer) put(message []byte) error {
@sends 	part := filepath.Join(w.folder, fmt.Sprintf("part.%08x", w.id))
@sends 	file, err := os.Create(part)
@sends 	if err != nil {
@sends 		return err
@sends 	}
@sends 	_, err = file.Write(message)
@sends 	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
@sends 		return err
@sends 	}
@onesender @sends 	name := fmt.Sprintf("message.%020d.%08x", w.next, w.id)
@manysenders @sends 	name := fmt.Sprintf("message.%020d.%08x", time.Now().UnixNano(), w.id)
@sends 	if err = os.Rename(part, filepath.Join(w.folder, name)); err != nil {
@sends 		return err
@sends 	}
@onesender @sends 	w.next++
@sends 	return w.folderFile.Sync()
@sends }
@sends 
@receives type reader struct {
@receives 	folder string
@receives 	names  []string
@receives 	// The message that was received last. It stays until the next one is asked for: if this program dies, its successor gets it.
@receives 	current string
@receives @compete 	lock    *os.File
@receives }
@receives 
@receives // False: nothing came for a second.
@receives func (r *reader) receive(message []byte) (came bool, err error) {
@receives 	if err = r.removeCurrent(); err != nil {
@receives 		return false, err
@receives 	}
@receives 	for began := time.Now(); time.Since(began) < time.Second; {
@receives 		for len(r.names) > 0 {
@receives 			path := filepath.Join(r.folder, r.names[0])
@receives 			r.names = r.names[1:]
@receives @compete 			if r.lock = lock(path); r.lock == nil {
@receives @compete 				continue
@receives @compete 			}
@receives 			content, err := os.ReadFile(path)
@receives 			if err != nil || len(content) != size {
@receives 				return false, fmt.Errorf("%s: %d bytes, %w", path, len(content), err)
@receives 			}
@receives 			copy(message, content)
@receives 			r.current = path
@receives 			return true, nil
@receives 		}
@receives 		if err = r.look(); err != nil {
@receives 			return false, err
@receives 		}
@receives 		if len(r.names) == 0 {
@receives 			time.Sleep(200 * time.Microsecond) // inotify(7) would say when there is one
@receives 		}
@receives 	}
@receives 	return false, nil
@receives }
@receives 
@receives // A list that is made while messages come may have a later one and not an earlier one; the second list has what is before the last of
@receives // the first.
@receives func (r *reader) look() error {
@receives 	first, err := list(r.folder)
@receives 	if err != nil || len(first) == 0 {
@receives 		return err
@receives 	}
@receives 	r.names, err = list(r.folder)
@receives 	for len(r.names) > 0 && r.names[len(r.names)-1] > first[len(first)-1] {
@receives 		r.names = r.names[:len(r.names)-1]
@receives 	}
@receives 	return err
@receives }
@receives 
@receives func (r *reader) removeCurrent() (err error) {
@receives 	if r.current != "" {
@receives 		err = os.Remove(r.current)
@receives 		r.current = ""
@receives @compete 		r.lock.Close()
@receives 	}
@receives 	return err
@receives }
@receives 
@receives @compete // A message of its own: locked by no other receiver, and there. The kernel gives it back when its receiver dies.
@receives @compete func lock(path string) *os.File {
@receives @compete 	file, err := os.Open(path)
@receives @compete 	if err != nil {
@receives @compete 		return nil
@receives @compete 	}
@receives @compete 	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
@receives @compete 		if found, err := file.Stat(); err == nil && found.Sys().(*syscall.Stat_t).Nlink > 0 {
@receives @compete 			return file
@receives @compete 		}
@receives @compete 	}
@receives @compete 	file.Close()
@receives @compete 	return nil
@receives @compete }
@receives @compete 
@sender type sender struct {
@sender 	writer *writer
@sender }
@sender 
@sender func openSender(name string) (*sender, error) {
@sender 	writer, err := openWriter(name)
@broadcast @sender 	for err == nil && syscall.Flock(int(writer.folderFile.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
@broadcast @sender 		syscall.Flock(int(writer.folderFile.Fd()), syscall.LOCK_UN)
@broadcast @sender 		time.Sleep(10 * time.Millisecond) // until a receiver has locked it
@broadcast @sender 	}
@sender 	return &sender{writer}, err
@sender }
@sender 
@sender func (s *sender) send(message []byte) error {
@sender 	return s.writer.send(message)
@sender }
@sender 
@sender func (s *sender) finish(mark []byte) error {
@sender 	err := s.send(mark)
@shared @onesender @sender 	for err == nil {
@shared @onesender @sender 		names, absent := list(s.writer.folder)
@shared @onesender @sender 		if absent != nil || len(names) == 0 {
@shared @onesender @sender 			return removeFolder(s.writer.folder)
@shared @onesender @sender 		}
@shared @onesender @sender 		time.Sleep(time.Millisecond)
@shared @onesender @sender 	}
@sender 	return err
@sender }
@receiver type receiver struct {
@receiver 	reader reader
@unshared @receiver 	lock   *os.File
@receiver }
@receiver 
@receiver func openReceiver(name string) (*receiver, error) {
@shared @receiver 	return &receiver{reader: reader{folder: name}}, makeFolder(name)
@unshared @receiver 	if err := makeFolder(name); err != nil {
@unshared @receiver 		return nil, err
@unshared @receiver 	}
@unshared @receiver 	lock, err := os.Open(name)
@unshared @receiver 	if err == nil {
@unshared @receiver 		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) // two would share the messages
@unshared @receiver 	}
@unshared @receiver 	return &receiver{reader: reader{folder: name}, lock: lock}, err
@receiver }
@receiver 
@receiver func (r *receiver) receive(message []byte) error {
@receiver 	for {
@receiver 		if came, err := r.reader.receive(message); came || err != nil {
@receiver 			return err
@receiver 		}
@receiver 	}
@receiver }
@receiver 
@receiver func (r *receiver) finish() error {
@receiver 	if err := r.reader.removeCurrent(); err != nil {
@receiver 		return err
@receiver 	}
@shared @receiver 	return nil // the sender removes the folder
@unshared @receiver 	return removeFolder(r.reader.folder)
@receiver }
