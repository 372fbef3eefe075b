package stops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
	"github.com/callgate/callgate/store"
)

// FileName is the file of stops in a data_dir.
const FileName = "stops.json"

// File is where a gateway keeps stops: every stop that is active, and those that have ended lately.
type File struct {
	Path string // empty: they end with the process
	// Foreign says that another process writes the file, and that this one reads it again and again.
	Foreign bool
}

// kept is what the file has.
type kept struct {
	Stops []store.Stop `json:"stops"`
	// Shared says that the stops of all gateways were read, by this gateway.
	Shared bool `json:"shared"`
}

// read returns what the file has; nothing where there is none.
func (f File) read() (k kept, err error) {
	if f.Path == "" {
		return k, nil
	}
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		k, err = decode(text)
	}
	if err != nil {
		return kept{}, fmt.Errorf("%s: %w: so it is not known what operators have stopped; restore the file, or remove it and stop again what has to be", f.Path, oserr.Reason(err))
	}
	return k, nil
}

func decode(text []byte) (k kept, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		return k, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return k, errors.New("found something behind the list of stops")
	}
	if k.Stops == nil {
		return k, errors.New("found no list of stops")
	}
	for i := range k.Stops {
		if s := &k.Stops[i]; s.ID == "" || s.Since.IsZero() {
			return k, fmt.Errorf("stop %d has no id, or no time", i+1)
		}
	}
	return k, nil
}

// write replaces what the file has. It is on the disk then.
func (f File) write(k kept) error {
	if f.Path == "" {
		return nil
	}
	k.Stops = append([]store.Stop{}, k.Stops...) // an empty list, and not none
	text, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(wholefile.Replace(f.Path, append(text, '\n')), wholefile.SyncFolder(filepath.Dir(f.Path)))
}
