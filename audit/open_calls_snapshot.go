package audit

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/safe"
)

// A start needs the calls without an outcome. So that it need not read the whole log for
// them, the log saves which calls are open, and at which record, and a start reads on from
// there. A snapshot is bound to the chain by that record's hash, and signed if the log
// signs heads. One that does not fit the log is not used.

const (
	snapshotName = "snapshot.json"
	// snapshotEvery is how many records are written between two snapshots, and at most
	// read at a start that has one. To that is added the number of open calls.
	snapshotEvery = 1 << 14
	// maxSnapshot bounds what is read of the file.
	maxSnapshot = 1 << 30
	// snapshotContext is signed before a snapshot, so that the signature is valid for
	// nothing else.
	snapshotContext = "callgate audit snapshot\n"
)

// place is an offset in the log. Its file is named by the seq of the first record, which
// does not change when the file is renamed.
type place struct {
	File   uint64 `json:"file"`
	Offset int64  `json:"offset"`
}

// openCalls are the executed calls that have no outcome up to a record of the log.
type openCalls struct {
	logfile.Link                  // the last record that was read or written
	End          place            `json:"end"`  // behind that record
	Open         map[string]place `json:"open"` // the decisions, by call id
}

func (c *openCalls) add(event Event, id string, at place) {
	if event == Ending {
		delete(c.Open, id)
		return
	}
	c.Open[id] = at
}

// readAll reads the whole log as it is. Whether it was changed is for Verifier to tell.
func (c *openCalls) readAll(dir string, progress func(read int64)) error {
	c.Open = map[string]place{}
	read := int64(0)
	return visitLines(dir, place{}, func(line []byte, at place) error {
		if event, id, ok := executedCall(line); ok && (event == Ending || isToolCall(line)) {
			c.add(event, id, at)
		}
		read += int64(len(line)) + 1
		progress(read)
		return nil
	})
}

// readOn reads the records behind the last, each of which must follow the one before it.
func (c *openCalls) readOn(dir string) error {
	return visitLines(dir, c.End, func(line []byte, at place) error {
		next, err := c.NextChained(line)
		if err != nil {
			return fmt.Errorf("behind seq %d a line %w", c.Seq, err)
		}
		if event, id, ok := executedCall(line); ok && (event == Ending || isToolCall(line)) {
			c.add(event, id, at)
		}
		c.Link, c.End = next, place{File: at.File, Offset: at.Offset + int64(len(line)) + 1}
		return nil
	})
}

// decisions reads the decisions of the open calls, in the order of the log. chained
// requires that each has its own hash.
func (c *openCalls) decisions(dir string, chained bool) ([]Record, error) {
	if len(c.Open) == 0 {
		return nil, nil
	}
	files, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	order := slices.SortedFunc(maps.Keys(c.Open), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Open[a].File, c.Open[b].File), cmp.Compare(c.Open[a].Offset, c.Open[b].Offset))
	})
	records := make([]Record, 0, len(order))
	var open *os.File
	var line []byte // reused
	defer func() { open.Close() }()
	last := uint64(0)
	for _, id := range order {
		at := c.Open[id]
		if open == nil || at.File != last {
			i := slices.IndexFunc(files, func(f logfile.Listed) bool { return f.First == at.File })
			if i < 0 {
				return nil, fmt.Errorf("no file begins with seq %d", at.File)
			}
			open.Close()
			if open, err = logfile.OpenRead(files[i].Name); err != nil {
				return nil, err
			}
			last = at.File
		}
		line, err = logfile.ReadLine(open, at.Offset, line)
		var r Record
		if err == nil {
			r, err = decision(line, id, chained)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: the decision of a call, at byte %d, cannot be read: %w", open.Name(), at.Offset, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// decision reads the decision of the call id.
func decision(line []byte, id string, chained bool) (Record, error) {
	var r Record
	if chained {
		if _, _, err := logfile.ParseChained(line); err != nil {
			return r, fmt.Errorf("the line %w", err)
		}
	}
	if event, of, ok := executedCall(line); !ok || event != Decision || of != id {
		return r, errors.New("the line is another record")
	}
	err := json.Unmarshal(line, &r)
	return r, err
}

// snapshotFile is the content of the file.
type snapshotFile struct {
	Snapshot  json.RawMessage `json:"snapshot"`
	SHA256    []byte          `json:"sha256"`
	Signature []byte          `json:"signature,omitempty"`
}

var errNoSnapshot = errors.New("there is no snapshot yet")

// readSnapshot reads the snapshot in dir and checks that it is whole, signed with key if
// there is one, and that the record which it names stands where it says.
func readSnapshot(dir string, key ed25519.PrivateKey) (*openCalls, error) {
	f, err := logfile.OpenFile(filepath.Join(dir, snapshotName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoSnapshot
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSnapshot))
	if err != nil {
		return nil, err
	}
	var file snapshotFile
	var c openCalls
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, fmt.Errorf("%s is incomplete or damaged", snapshotName)
	}
	if sum := sha256.Sum256(file.Snapshot); string(sum[:]) != string(file.SHA256) || json.Unmarshal(file.Snapshot, &c) != nil ||
		c.Open == nil {
		return nil, fmt.Errorf("%s is incomplete or damaged", snapshotName)
	}
	if len(key) > 0 && !ed25519.Verify(key.Public().(ed25519.PublicKey), append([]byte(snapshotContext), file.Snapshot...),
		file.Signature) {
		return nil, fmt.Errorf("%s is not signed with the key of the log", snapshotName)
	}
	return &c, c.confirm(dir)
}

// confirm checks that the log has the last record where it was.
func (c *openCalls) confirm(dir string) error {
	files, err := listFiles(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f logfile.Listed) bool { return f.First == c.End.File })
	if i < 0 {
		return fmt.Errorf("%s names a file that begins with seq %d, and there is none", snapshotName, c.End.File)
	}
	f, err := logfile.OpenRead(files[i].Name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if c.End.Offset < 1 || c.End.Offset > info.Size() {
		return fmt.Errorf("%s names seq %d, and %s ends before it: records are missing, or it is of another log", snapshotName, c.Seq,
			files[i].Name)
	}
	start, err := logfile.LineStart(f, c.End.Offset-1)
	if err != nil {
		return err
	}
	at, size, err := logfile.LineAt(f, start, c.End.Offset)
	if err != nil {
		return fmt.Errorf("%s: the line at byte %d %w", files[i].Name, start, err)
	}
	if at != c.Link || start+size != c.End.Offset {
		return fmt.Errorf("%s: seq %d is not the record that %s names", files[i].Name, c.Seq, snapshotName)
	}
	return nil
}

// save writes the snapshot in dir, whole or not at all.
func (c *openCalls) save(dir string, key ed25519.PrivateKey) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	file := snapshotFile{Snapshot: body, SHA256: sum[:]}
	if len(key) > 0 {
		file.Signature = ed25519.Sign(key, append([]byte(snapshotContext), body...))
	}
	content, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return logfile.Replace(filepath.Join(dir, snapshotName), content)
}

// track notes the confirmed records of executed calls, and saves a snapshot when one is
// due. It is called with Log.mu held.
func (l *Log) track(confirmed []*entry) {
	w := &l.writer
	if l.calls == nil {
		return
	}
	for i, e := range confirmed {
		if e.event != "" {
			l.calls.add(e.event, e.callID, place{File: w.before.Seq + 1, Offset: w.tails[i].end - w.tails[i].last})
		}
	}
	l.calls.Link, l.calls.End = w.Link, place{File: w.before.Seq + 1, Offset: w.end}
	if l.saving || w.Seq-l.saved < l.opts.snapshotEvery+uint64(len(l.calls.Open)) {
		return
	}
	l.saving, l.saved = true, w.Seq
	now := *l.calls
	now.Open = maps.Clone(now.Open)
	l.saves.Go(func() {
		err := safe.Do(func() error { return now.save(filepath.Dir(l.path), l.opts.SignKey) })
		l.mu.Lock()
		l.saving = false
		changed := l.saveFailed != (err != nil)
		l.saveFailed = err != nil
		l.mu.Unlock()
		if changed {
			l.opts.reportDegraded(Snapshots, err)
		}
	})
}
