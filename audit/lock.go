package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

const (
	lockName = "lock"
	// lockSize is the fixed length of the lock file: it is written over in
	// place, so that a full disk does not keep a process from starting.
	lockSize = 512
	// lockPollInterval is how often AwaitUnlock reads the lock.
	lockPollInterval = 20 * time.Millisecond
)

// LockedError says that another process has the folder. PID is 0 if that process has
// not written its name yet.
type LockedError struct {
	Dir     string
	PID     int
	Host    string
	Started time.Time
	// ShuttingDown says that the holder has begun to end; see AnnounceShutdown.
	ShuttingDown bool
}

// Error is one line that names the holder.
func (h *LockedError) Error() string {
	if h.PID == 0 {
		return fmt.Sprintf("%s is in use by another process: stop it, or choose another data_dir", h.Dir)
	}
	return fmt.Sprintf("%s is in use by process %d on host %q since %s: stop it, or choose another data_dir",
		h.Dir, h.PID, h.Host, h.Started.Format(time.RFC3339))
}

// holder is the content of the lock file.
type holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	Ending  bool      `json:"ending,omitempty"`
}

// takeLock locks dir for this process until the file is closed or the process ends in
// any way. The file stays: removing it would let two processes each lock their own.
func takeLock(dir string, now time.Time) (*logfile.Disk, error) {
	path := filepath.Join(dir, lockName)
	f, err := logfile.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	locked, err := logfile.Lock(f.File)
	if err == nil && !locked {
		err = writeHolder(f, now, false)
	}
	switch {
	case locked:
		err = readHolder(dir, f)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

func readHolder(dir string, f *logfile.Disk) *LockedError {
	lock := &LockedError{Dir: dir}
	var by holder
	content, err := io.ReadAll(io.NewSectionReader(f, 0, lockSize))
	if err == nil && json.Unmarshal(content, &by) == nil {
		lock.PID, lock.Host, lock.Started, lock.ShuttingDown = by.PID, by.Host, by.Started, by.Ending
	}
	return lock
}

// AnnounceShutdown writes into the lock that this process is ending, for processes that
// wait for the folder. The log stays open until Close.
func (l *Log) AnnounceShutdown() error {
	if l == nil || l.lock == nil {
		return nil
	}
	return writeHolder(l.lock, l.started, true)
}

// AwaitUnlock waits while the folder is locked by a process that has announced its
// shutdown, and returns nil once it is free. If ctx ends first, or the holder has not
// announced its shutdown, it returns a *LockedError.
func AwaitUnlock(ctx context.Context, dir string) error {
	for {
		lock, err := readLock(dir)
		if err != nil || lock == nil {
			return err
		}
		if !lock.ShuttingDown {
			return lock
		}
		select {
		case <-ctx.Done():
			return lock
		case <-time.After(lockPollInterval):
		}
	}
}

// readLock returns who has the folder; nil if nobody has.
func readLock(dir string) (*LockedError, error) {
	f, err := logfile.OpenFile(filepath.Join(dir, lockName), os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer f.Close() // which also ends a lock that was taken to see whether it is free
	locked, err := logfile.Lock(f.File)
	if err != nil || !locked {
		return nil, err
	}
	return readHolder(dir, f), nil
}

func writeHolder(f *logfile.Disk, started time.Time, ending bool) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	content, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Started: started.UTC(), Ending: ending})
	if err != nil {
		return err
	}
	if len(content) >= lockSize {
		return fmt.Errorf("the host's name has %d bytes, too many for the lock", len(host))
	}
	line := make([]byte, lockSize)
	for i := range line {
		line[i] = ' '
	}
	copy(line, content)
	line[lockSize-1] = '\n'
	_, err = f.WriteAt(line, 0)
	return err
}
