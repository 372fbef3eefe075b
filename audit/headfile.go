package audit

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
)

// headFile is the file of heads, open for one more. What stands in it is kept
// by the same rules as the log: cut back to the last confirmed head after a
// failure, and never repaired where another has changed it.
type headFile struct {
	path string
	key  ed25519.PrivateKey
	open func(path string, flags int) (file, error)
	now  func() time.Time

	file file // nil after a failure
	at   head // the last confirmed one
	line []byte
	end  int64 // of that line
}

// resume finds the last head, and cuts off an incomplete line behind it. Where
// there is none it writes the first, which only an empty log may have: signing
// records whose heads were removed would vouch for whatever was put there.
func (f *headFile) resume(log link) error {
	opened, err := f.open(f.path, writeFlags|os.O_CREATE)
	if err != nil {
		return err
	}
	f.file = opened
	size, err := f.file.Size()
	if err != nil {
		return err
	}
	if f.end, err = lineStart(f.file, size); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.end == 0 {
		return f.begin(log)
	}
	start, err := lineStart(f.file, f.end-1)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if f.end-start > maxHead {
		return fmt.Errorf("%s: the last line %w", f.path, errNoHead)
	}
	f.line = make([]byte, f.end-start)
	if _, err := f.file.ReadAt(f.line, start); err != nil {
		return err
	}
	if f.at, err = f.last(); err != nil {
		return fmt.Errorf("%s: the last line %w", f.path, err)
	}
	return f.cut()
}

// last reads the last line. One that an earlier key signed is Check's to verify.
func (f *headFile) last() (head, error) {
	line := f.line[:len(f.line)-1]
	h, _, _, err := readHead(line)
	public := f.public()
	if err == nil && h.Key == KeyID(public) {
		h, err = readSigned(line, map[string]ed25519.PublicKey{h.Key: public})
	}
	return h, err
}

func (f *headFile) public() ed25519.PublicKey {
	return ed25519.PublicKey(f.key[len(f.key)-ed25519.PublicKeySize:])
}

func (f *headFile) begin(log link) error {
	if log.seq > 0 {
		return fmt.Errorf("%s has no signed head, and the log holds records: bring it back, or move heads.jsonl and audit*.jsonl away to begin a new chain", f.path)
	}
	if err := f.cut(); err != nil {
		return err
	}
	var chain [16]byte
	if _, err := rand.Read(chain[:]); err != nil {
		return err
	}
	f.at.Chain = hex.EncodeToString(chain[:])
	return f.add(link{hash: genesis})
}

// add brings a head for each link to disk. After an error none of them counts.
func (f *headFile) add(links ...link) error {
	if f.file == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	err := guard(func() error { return f.write(links) })
	if err != nil {
		broken := f.file
		f.file = nil
		// What Close says of a file in doubt adds nothing to the doubt.
		_ = guard(broken.Close)
	}
	return err
}

func (f *headFile) write(links []link) error {
	var buf, line []byte
	at := f.at
	for _, l := range links {
		at.Number, at.Seq, at.Hash, at.Time, at.Key = at.Number+1, l.seq, l.hash, f.now().UTC(), KeyID(f.public())
		var err error
		if line, err = at.sign(f.key); err != nil {
			return err
		}
		buf = append(buf, line...)
	}
	if err := f.endsAt(f.end); err != nil {
		return err
	}
	if _, err := f.file.Write(buf); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	end := f.end + int64(len(buf))
	if err := f.endsAt(end); err != nil {
		return err
	}
	f.at, f.line, f.end = at, line, end
	return nil
}

func (f *headFile) endsAt(size int64) error {
	found, err := f.file.Size()
	if err == nil && found != size {
		err = fmt.Errorf("%s: has %d bytes, expected %d: it was changed by another", f.path, found, size)
	}
	return err
}

// reopen opens the file anew, reads the last confirmed head back, and cuts off
// what stands behind it.
func (f *headFile) reopen() error {
	return guard(func() error {
		fresh, err := f.open(f.path, writeFlags)
		if err != nil {
			return err
		}
		again := *f
		again.file = fresh
		if err := guard(again.readBack); err != nil {
			return errors.Join(err, fresh.Close())
		}
		f.file = fresh
		return nil
	})
}

func (f *headFile) readBack() error {
	line := make([]byte, len(f.line))
	if _, err := f.file.ReadAt(line, f.end-int64(len(line))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(line, f.line) {
		return fmt.Errorf("%s: the last confirmed head, of seq %d, is not the one that was written", f.path, f.at.Seq)
	}
	return f.cut()
}

// cut ends the file at the last confirmed head, durably.
func (f *headFile) cut() error {
	if err := f.file.Truncate(f.end); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *headFile) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
