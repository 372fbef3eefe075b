package acp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/wholefile"
	"github.com/callgate/callgate/upstream"
)

const (
	// maxKept bounds the sessions that are kept: with another one, the oldest is forgotten.
	maxKept = 100
	// maxHead and maxBody bound the lines of a file.
	maxHead = 64 << 10
	maxBody = 128 << 20
	// maxKeptDepth bounds how deep a body nests.
	maxKeptDepth = 128
)

// folder keeps the sessions of one subject, a file each, of two lines: what a list says of it, and
// the rest. Only the owner of the process may read them.
type folder struct {
	path string
	mu   *sync.Mutex
}

// kept is the folder of the subject that a request was admitted for. A conversation of another
// principal, agent, workspace or project is not there.
func (f *Face) kept(a *gateway.Admission) *folder {
	s := a.Subject()
	digest := sha256.New()
	for _, name := range []string{a.Principal(), s.Agent, s.Workspace, s.Project} {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(name), name)
	}
	return &folder{path: filepath.Join(f.options.Folder, hex.EncodeToString(digest.Sum(nil)[:16])), mu: &f.sessionsMu}
}

// keptNow is the folder of the subject that the connection is for now.
func (c *connection) keptNow(ctx context.Context) (*folder, error) {
	admission, err := c.face.options.Turns.Executor.Kernel.Admit(ctx, c.request)
	if err != nil {
		return nil, err
	}
	return c.face.kept(admission), nil
}

// head is what a list says of a session.
type head struct {
	ID      string    `json:"id"`
	Cwd     string    `json:"cwd"`
	Others  []string  `json:"others,omitempty"`
	Title   string    `json:"title,omitempty"`
	Updated time.Time `json:"updated"`
}

// head says of the session what a list has.
func (s *session) head() head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return head{ID: s.id, Cwd: s.cwd, Others: s.others, Title: s.title, Updated: s.updated}
}

// body is the rest of a session.
type body struct {
	Protocol upstream.Protocol `json:"protocol"`
	Messages []json.RawMessage `json:"messages"`
	Shown    []json.RawMessage `json:"shown"` // params of session/update
}

// file is where a session is kept. An id that was not given out here has none.
func (f *folder) file(id string) (string, bool) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	if len(id) < 20 || len(id) > 64 || strings.Trim(id, letters) != "" {
		return "", false
	}
	return filepath.Join(f.path, id+".json"), true
}

// write keeps a session. Its caller is the only user of the history.
func (f *folder) write(s *session) error {
	name, ok := f.file(s.id)
	if !ok {
		return errors.New("the session has no file")
	}
	if len(s.shown.entries) == 0 {
		return nil
	}
	b := body{Protocol: s.protocol, Messages: s.history.Messages}
	for _, u := range s.shown.updates() {
		raw, err := json.Marshal(wire.SessionNotification{SessionID: s.id, Update: u})
		if err != nil {
			return err
		}
		// An output may nest deeper than what is read again. The text of the content says the same.
		if call, ok := u.(wire.ToolCall); ok && rawjson.Check(raw, wire.MaxDepth) != nil {
			call.RawInput, call.RawOutput = nil, nil
			if raw, err = json.Marshal(wire.SessionNotification{SessionID: s.id, Update: call}); err != nil {
				return err
			}
		}
		b.Shown = append(b.Shown, raw)
	}
	first, err := json.Marshal(s.head())
	if err != nil {
		return err
	}
	rest, err := json.Marshal(b)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	if err := wholefile.Replace(name, slices.Concat(first, []byte{'\n'}, rest, []byte{'\n'})); err != nil {
		return err
	}
	return f.forget()
}

// forget removes the oldest sessions beyond the bound, under mu.
func (f *folder) forget() error {
	heads, err := f.heads()
	if err != nil || len(heads) <= maxKept {
		return err
	}
	slices.SortFunc(heads, func(a, b head) int { return a.Updated.Compare(b.Updated) })
	for _, h := range heads[:len(heads)-maxKept] {
		name, _ := f.file(h.ID)
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// list says of each session what a list has.
func (f *folder) list() ([]head, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heads()
}

// heads reads the first line of each file. A file that is none of a session is passed over.
func (f *folder) heads() ([]head, error) {
	files, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var heads []head
	for _, file := range files {
		id, _ := strings.CutSuffix(file.Name(), ".json")
		name, ok := f.file(id)
		if !ok {
			continue
		}
		h, _, err := open(name, false)
		if err == nil && h.ID == id {
			heads = append(heads, h)
		}
	}
	return heads, nil
}

// open reads a file, with its second line or without.
func open(name string, whole bool) (h head, b body, err error) {
	file, err := os.Open(name)
	if err != nil {
		return h, b, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReader(io.LimitReader(file, maxHead+maxBody))
	line, err := lines.ReadBytes('\n')
	if err == nil && len(line) > maxHead {
		err = errors.New("the first line is too long")
	}
	if err == nil {
		err = decode(line, &h)
	}
	if err != nil || !whole {
		return h, b, err
	}
	if line, err = lines.ReadBytes('\n'); err == nil {
		err = decode(line, &b)
	}
	return h, b, err
}

// decode reads JSON strictly.
func decode(line []byte, into any) error {
	if err := rawjson.Check(line, maxKeptDepth); err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// read returns a session that was kept. The error says nothing of the file.
func (f *folder) read(id string) (*session, error) {
	name, ok := f.file(id)
	if !ok {
		return nil, errNoSession
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h, b, err := open(name, true)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoSession
	case err != nil:
		return nil, fmt.Errorf("a kept session cannot be read: %w", err)
	case h.ID != id:
		return nil, errNoSession
	}
	s := &session{id: id, title: h.Title, updated: h.Updated, protocol: b.Protocol, history: turns.Conversation{Messages: b.Messages}}
	for _, raw := range b.Shown {
		n, err := wire.Read[wire.SessionNotification](raw)
		if err != nil {
			return nil, fmt.Errorf("a kept session cannot be read: %w", err)
		}
		s.shown.add(n.Update)
	}
	return s, nil
}

// remove forgets a session, which need not be there.
func (f *folder) remove(id string) error {
	name, ok := f.file(id)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
