package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	lockName = "lock"
	// lockSize is the fixed length of the lock file: it is written over in
	// place, so that a full disk does not keep a process from starting.
	lockSize = 512
)

// Held says that another process has the folder. PID is 0 where the holder
// has not yet written its name.
type Held struct {
	Dir     string
	PID     int
	Host    string
	Started time.Time
}

// Error is one line that names the holder.
func (h *Held) Error() string {
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
}

// takeLock locks dir for this process until release, or until the process ends
// in any way. The file stays: removing it would let two processes each lock
// their own.
func takeLock(dir string, now time.Time) (*disk, error) {
	path := filepath.Join(dir, lockName)
	f, err := openDisk(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	held, err := flock(f.File)
	if err == nil && !held {
		err = writeHolder(f, now)
	}
	switch {
	case held:
		err = readHolder(dir, f)
	case err != nil:
		err = fmt.Errorf("lock %s: %w", path, err)
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

func readHolder(dir string, f *disk) *Held {
	held := &Held{Dir: dir}
	var by holder
	content, err := io.ReadAll(io.NewSectionReader(f, 0, lockSize))
	if err == nil && json.Unmarshal(content, &by) == nil {
		held.PID, held.Host, held.Started = by.PID, by.Host, by.Started
	}
	return held
}

func writeHolder(f *disk, now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	content, err := json.Marshal(holder{PID: os.Getpid(), Host: host, Started: now.UTC()})
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
