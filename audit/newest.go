package audit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// Last returns the seq and the hash of the last durable record; seq is 0 where there is none.
func (l *Log) Last() (seq uint64, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable.Seq, l.durable.Hash.String()
}

// Search says which records Newest returns.
type Search struct {
	// Before is the seq that all of them are before; 0 begins with the last durable record.
	Before uint64
	// Count is how many there are at most, and MaxBytes about how many bytes of the log are
	// read for them.
	Count    int
	MaxBytes int64
	// Since ends the search at the first record that is older; the zero time ends it nowhere.
	Since time.Time
	// Equal are members, by their names on disk, and the values that they must have.
	Equal map[string]string
	// Keep has the last word on a record; nil keeps all.
	Keep func(*Record) bool
}

// Found are records that were searched for, the newest first.
type Found struct {
	Records []Record
	// Next is where a search continues: its Before. 0: the log has no more.
	Next uint64
	// Read is how many bytes were read.
	Read int64
}

// errEnough ends a search early.
var errEnough = errors.New("enough was read")

// errOlder ends a search that has come to older records.
var errOlder = errors.New("the rest is older")

// errMoved says that a file was rotated between the list of files and its reading.
var errMoved = errors.New("a file of the log was moved")

// Newest searches the durable records from the newest on, beside the writer: it takes nothing
// from those who append. It ends early, with what it has found, once it has read MaxBytes or
// ctx ends. The chain is not verified.
func (l *Log) Newest(ctx context.Context, s Search) (Found, error) {
	last, _ := l.Last()
	if s.Before == 0 || s.Before > last+1 {
		s.Before = last + 1
	}
	found := Found{Next: s.Before}
	needles := s.needles()
	for try := range maxListTries {
		visit := func(line []byte) error {
			seq, ok := logfile.SeqOf(line)
			switch {
			case !ok || seq >= found.Next:
				return nil // not durable yet
			case seq+1 < found.Next && try+1 < maxListTries:
				return errMoved
			}
			found.Next = seq
			if !s.Since.IsZero() {
				if at, ok := logfile.TimeOf(line); ok && at.Before(s.Since) {
					return errOlder
				}
			}
			if containsAll(line, needles) {
				if r, err := Decode(line); err == nil && s.matches(&r) {
					found.Records = append(found.Records, r)
				}
			}
			if len(found.Records) >= s.Count || found.Read >= s.MaxBytes || ctx.Err() != nil {
				return errEnough
			}
			return nil
		}
		err := l.eachFileBackward(&found, visit)
		switch {
		case errors.Is(err, errMoved), err == nil && found.Next == s.Before && s.Before > 1 && try+1 < maxListTries:
			continue // the file that has the newest was perhaps rotated before it was read
		case err != nil && !errors.Is(err, errEnough) && !errors.Is(err, errOlder):
			return Found{}, err
		case !errors.Is(err, errEnough) || found.Next <= 1:
			found.Next = 0
		}
		break
	}
	return found, nil
}

// eachFileBackward visits the lines before found.Next, the last first.
func (l *Log) eachFileBackward(found *Found, visit func(line []byte) error) error {
	files, err := listFiles(filepath.Dir(l.path))
	if err != nil {
		return err
	}
	for _, file := range slices.Backward(files) {
		if file.first >= found.Next {
			continue
		}
		if err := visitBackward(file.name, found.Next, &found.Read, visit); err != nil {
			return err
		}
	}
	return nil
}

// needles are texts that every line has which matches. Values that are escaped on disk are
// left to matches.
func (s *Search) needles() [][]byte {
	var list [][]byte
	for name, value := range s.Equal {
		if quoted := appendMember(nil, `"`+name+`":"`, value); !bytes.ContainsRune(quoted, '\\') {
			list = append(list, append(quoted, '"'))
		}
	}
	return list
}

func containsAll(line []byte, needles [][]byte) bool {
	return !slices.ContainsFunc(needles, func(n []byte) bool { return !bytes.Contains(line, n) })
}

func (s *Search) matches(r *Record) bool {
	for name, value := range s.Equal {
		if r.member(name) != value {
			return false
		}
	}
	return s.Keep == nil || s.Keep(r)
}

// member returns a member by its name on disk, of those that can be searched for.
func (r *Record) member(name string) string {
	switch name {
	case "event":
		return string(r.Event)
	case "call_id":
		return r.CallID
	case "principal":
		return r.Principal
	case "agent":
		return r.Agent
	case "workspace":
		return r.Workspace
	case "project":
		return r.Project
	case "tool":
		return r.Tool
	case "ledger":
		return r.Ledger
	case "verdict":
		return string(r.Verdict)
	case "code":
		return string(r.Code)
	}
	return ""
}

// backwardBlock is how much of a file is read at a time, from its end.
const backwardBlock int64 = 256 << 10

// visitBackward visits the lines of a file that are before a seq, the last first, and counts
// the bytes that it reads. An incomplete last line is passed over.
func visitBackward(name string, before uint64, read *int64, visit func(line []byte) error) error {
	f, err := logfile.OpenRead(name)
	if errors.Is(err, os.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := logfile.OffsetBefore(f, before)
	if err != nil {
		return err
	}
	var buffer []byte // visit keeps none of it
	var starts []int  // of the lines of a block: found forwards, which is faster
	for end > 0 {
		// All but the first line of a block is whole. A line longer than a block grows it.
		var block []byte
		first := 0
		for size := min(backwardBlock, end); ; size = min(2*size, end) {
			if int64(cap(buffer)) < size {
				buffer = make([]byte, size)
			}
			block = buffer[:size]
			if _, err := f.ReadAt(block, end-size); err != nil {
				return err
			}
			*read += size
			if size == end {
				break
			}
			if first = bytes.IndexByte(block[:len(block)-1], '\n') + 1; first > 0 {
				break
			}
		}
		starts = starts[:0]
		for at := first; at < len(block); {
			starts = append(starts, at)
			length := bytes.IndexByte(block[at:], '\n') + 1
			if length == 0 {
				break // the block ends at the end of a line, so there is no such line
			}
			at += length
		}
		next := len(block)
		for _, at := range slices.Backward(starts) {
			if err := visit(block[at : next-1]); err != nil {
				return err
			}
			next = at
		}
		end -= int64(len(block) - first)
	}
	return nil
}
