package secret

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/renew"
)

// maxKept bounds the places that a Store keeps values of. Beyond it, all are read again.
const maxKept = 1024

// Store reads secrets at their places, and keeps the last good values of files and commands. It
// is safe for concurrent use.
type Store struct {
	now    func() time.Time
	logger *slog.Logger
	group  renew.Group

	mu       sync.Mutex
	files    map[string]*file
	commands map[string]*renew.Value[string]
}

// NewStore returns a Store that logs when it keeps a value whose place gives none. Nil arguments
// are time.Now, and no log. Close it to end the commands that run.
func NewStore(now func() time.Time, logger *slog.Logger) *Store {
	if now == nil {
		now = time.Now
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Store{now: now, logger: logger, files: map[string]*file{}, commands: map[string]*renew.Value[string]{}}
}

// Close ends the commands that run, with their process groups, and waits for them.
func (s *Store) Close() { s.group.Close() }

// Resolve returns the secret at a place as Ref.String names it. It waits for a command within the
// context, and only if there is no value of it that may still be used. The error names the place,
// never its content.
func (s *Store) Resolve(ctx context.Context, place string) (string, error) {
	r := Parse(place)
	switch r.kind {
	case inFile:
		return s.file(r.place).read(s.now(), s.logger)
	case inCommand:
		v, err := s.command(r.place)
		if err != nil {
			return "", err
		}
		return v.Get(ctx)
	}
	return r.Read()
}

func (s *Store) file(path string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		if len(s.files) >= maxKept {
			clear(s.files)
		}
		f = &file{path: path}
		s.files[path] = f
	}
	return f
}

func (s *Store) command(place string) (*renew.Value[string], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.commands[place]; v != nil {
		return v, nil
	}
	c, err := parseCommand(place)
	if err != nil {
		return nil, err
	}
	if len(s.commands) >= maxKept {
		clear(s.commands)
	}
	var failing atomic.Bool
	v := renew.New(renew.Source[string]{
		Group: &s.group, Now: s.now, Timeout: c.Timeout,
		Fetch: func(ctx context.Context) (renew.Fetched[string], error) {
			value, err := c.run(ctx)
			if err != nil {
				return renew.Fetched[string]{}, err
			}
			if failing.Swap(false) {
				s.logger.Info("a command gives its secret again", "command", c.name())
			}
			now := s.now()
			return renew.Fetched[string]{Value: value, Renew: now.Add(c.Refresh), Until: now.Add(c.Refresh + keepFor)}, nil
		},
		Failed: func(err error, until time.Time) {
			if !failing.Swap(true) {
				s.logger.Warn("a secret could not be renewed; its last value is used", "cause", err,
					"until", until.UTC().Format(time.RFC3339))
			}
		},
	})
	s.commands[place] = v
	return v, nil
}
