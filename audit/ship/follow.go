package ship

import (
	"bytes"
	"errors"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// The most of one batch: records, and about how many bytes of lines. A single record may be longer.
const (
	maxRecords = 512
	maxBytes   = 1 << 20
)

// batch are records that follow one another.
type batch struct {
	lines [][]byte // without line ends
	end   logfile.Link
	// gone counts records before the last line that are in no file any more, or not as they
	// were written.
	gone uint64
}

var errFull = errors.New("the batch is full")

// next reads the durable records behind one; there are no lines where there is nothing more yet.
func (s *Shipper) next() (b batch, err error) {
	last, _ := s.options.Last()
	size := 0
	b.end = s.at
	log := logfile.Reader{Dir: s.options.Dir, Hashed: true}
	if s.at.Seq < last {
		err = log.Oldest(s.at.Seq+1, last, func(line []byte, at logfile.Link) error {
			if len(b.lines) == maxRecords || size >= maxBytes {
				return errFull
			}
			b.gone += at.Seq - b.end.Seq - 1
			b.lines, b.end = append(b.lines, bytes.Clone(line)), at
			size += len(line)
			return nil
		})
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	return b, err
}

// has reports whether the log may have a record: it is in a file with this hash, or in none any
// more.
func (s *Shipper) has(at logfile.Link) (is bool, err error) {
	seq, hash := s.options.Last()
	switch {
	case at.Seq > seq:
		return false, nil
	case at.Seq == seq:
		return at.Hash.String() == hash, nil
	case at.Seq == 0:
		return at.Hash == logfile.Genesis, nil
	}
	is = true
	log := logfile.Reader{Dir: s.options.Dir, Hashed: true}
	err = log.Oldest(at.Seq, at.Seq, func(_ []byte, found logfile.Link) error {
		is = found == at
		return nil
	})
	return is, err
}
