package checkpoint

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/safe"
)

// fileStore is the file of checkpoints, open for the next one. It follows the
// same rules as the log: truncated to the last confirmed checkpoint after a failure,
// and never repaired if another process has changed it.
type fileStore struct {
	path string
	key  ed25519.PrivateKey
	open func(path string, flags int) (logfile.File, error)
	now  func() time.Time

	file      logfile.File // nil after a failure
	confirmed Checkpoint   // the last confirmed one
	line      []byte
	end       int64 // of that line
}

// resume finds the last checkpoint, and truncates an incomplete line behind it. If
// there is none it writes the first, which only an empty log may have: to sign records
// whose checkpoints were removed would be to vouch for whatever was put there.
func (f *fileStore) resume(log logfile.Link) error {
	opened, err := f.open(f.path, logfile.WriteFlags|os.O_CREATE)
	if err != nil {
		return err
	}
	f.file = opened
	size, err := f.file.Size()
	if err != nil {
		return err
	}
	if f.end, err = logfile.LineStart(f.file, size); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.end == 0 {
		return f.create(log)
	}
	start, err := logfile.LineStart(f.file, f.end-1)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.end-start > maxCheckpointLine {
		return fmt.Errorf("%s: the last line %w", f.path, errNoCheckpoint)
	}
	f.line = make([]byte, f.end-start)
	if _, err := f.file.ReadAt(f.line, start); err != nil {
		return err
	}
	if f.confirmed, err = f.parseLast(); err != nil {
		return fmt.Errorf("%s: the last line %w", f.path, err)
	}
	return f.truncate()
}

// parseLast reads the last line. A line that an earlier key signed is Verifier's to
// verify.
func (f *fileStore) parseLast() (Checkpoint, error) {
	line := f.line[:len(f.line)-1]
	h, _, _, err := Parse(line)
	public := f.public()
	if err == nil && h.Key == KeyID(public) {
		h, err = verifyCheckpoint(line, map[string]ed25519.PublicKey{h.Key: public})
	}
	return h, err
}

func (f *fileStore) public() ed25519.PublicKey {
	return ed25519.PublicKey(f.key[len(f.key)-ed25519.PublicKeySize:])
}

func (f *fileStore) create(log logfile.Link) error {
	if log.Seq > 0 {
		return fmt.Errorf("%s has no signed head, and the log holds records: bring it back, or move heads.jsonl and audit*.jsonl away to begin a new chain", f.path)
	}
	if err := f.truncate(); err != nil {
		return err
	}
	var chain [16]byte
	if _, err := rand.Read(chain[:]); err != nil {
		return err
	}
	f.confirmed.Chain = hex.EncodeToString(chain[:])
	return f.append(logfile.Link{Hash: logfile.Genesis})
}

// append writes a checkpoint for each link to disk. After an error none of them counts.
func (f *fileStore) append(links ...logfile.Link) error {
	if f.file == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	err := safe.Do(func() error { return f.write(links) })
	if err != nil {
		broken := f.file
		f.file = nil
		// The file is in doubt already: an error of Close adds nothing.
		_ = safe.Do(broken.Close)
	}
	return err
}

func (f *fileStore) write(links []logfile.Link) error {
	var buf, line []byte
	at := f.confirmed
	for _, l := range links {
		at.Number, at.Seq, at.Hash, at.Time, at.Key = at.Number+1, l.Seq, l.Hash, f.now().UTC(), KeyID(f.public())
		var err error
		if line, err = at.Sign(f.key); err != nil {
			return err
		}
		buf = append(buf, line...)
	}
	if err := f.checkSize(f.end); err != nil {
		return err
	}
	if _, err := f.file.Write(buf); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	end := f.end + int64(len(buf))
	if err := f.checkSize(end); err != nil {
		return err
	}
	f.confirmed, f.line, f.end = at, line, end
	return nil
}

func (f *fileStore) checkSize(size int64) error {
	found, err := f.file.Size()
	if err == nil && found != size {
		err = fmt.Errorf("%s: has %d bytes, expected %d: it was changed by another", f.path, found, size)
	}
	return err
}

// reopen opens the file again, reads the last confirmed checkpoint back, and truncates
// the rest.
func (f *fileStore) reopen() error {
	return safe.Do(func() error {
		fresh, err := f.open(f.path, logfile.WriteFlags)
		if err != nil {
			return err
		}
		second := *f
		second.file = fresh
		if err := safe.Do(second.readBack); err != nil {
			return errors.Join(err, fresh.Close())
		}
		f.file = fresh
		return nil
	})
}

func (f *fileStore) readBack() error {
	line := make([]byte, len(f.line))
	if _, err := f.file.ReadAt(line, f.end-int64(len(line))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(line, f.line) {
		return fmt.Errorf("%s: the last confirmed head, of seq %d, is not the one that was written", f.path, f.confirmed.Seq)
	}
	return f.truncate()
}

// truncate ends the file at the last confirmed checkpoint, durably.
func (f *fileStore) truncate() error {
	if err := f.file.Truncate(f.end); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *fileStore) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
