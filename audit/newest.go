package audit

import (
	"bytes"
	"context"
	"errors"
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
	log := logfile.Reader{Dir: filepath.Dir(l.path)}
	err := log.Newest(s.Before, func(line []byte, record logfile.Link) error {
		found.Next = record.Seq
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
		if len(found.Records) >= s.Count || log.Bytes >= s.MaxBytes || ctx.Err() != nil {
			return errEnough
		}
		return nil
	})
	found.Read = log.Bytes
	switch {
	case err != nil && !errors.Is(err, errEnough) && !errors.Is(err, errOlder):
		return Found{}, err
	case !errors.Is(err, errEnough) || found.Next <= 1:
		found.Next = 0
	}
	return found, nil
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
