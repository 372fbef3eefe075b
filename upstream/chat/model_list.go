package chat

import (
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/internal/ascii"
)

// ListedModel is a model that an upstream says it has.
type ListedModel struct {
	ID          string // visible ASCII, at most 256 bytes
	DisplayName string // empty: the upstream gives none
	Created     time.Time
}

// Bounds of a list of models. The bytes of the answer are bounded by Definition.MaxBody.
const (
	maxListed     = 4096
	maxListedID   = 256
	maxListedName = 256
)

// ReadModels parses {"data":[{"id":…}, …]} with other members beside.
func (r *Reader) ReadModels(raw []byte) ([]ListedModel, error) {
	var models []ListedModel
	listed := false
	err := r.document(raw, func(name []byte) error {
		if string(name) != "data" {
			return r.skip()
		}
		listed = true
		return r.array(func() error {
			if len(models) == maxListed {
				return fmt.Errorf("more than %d models", maxListed)
			}
			m, err := r.listedModel()
			models = append(models, m)
			return err
		})
	})
	if err == nil && !listed {
		err = errors.New("an answer without \"data\"")
	}
	return models, err
}

func (r *Reader) listedModel() (ListedModel, error) {
	var m ListedModel
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "id":
			return r.textInto(&m.ID)
		case "display_name":
			return r.textInto(&m.DisplayName)
		case "created":
			seconds, err := r.seconds()
			if seconds > 0 {
				m.Created = time.Unix(seconds, 0).UTC()
			}
			return err
		case "created_at":
			return r.createdAt(&m)
		}
		return r.skip()
	})
	switch {
	case err != nil:
		return m, err
	case m.ID == "" || len(m.ID) > maxListedID || !ascii.IsVisible(m.ID):
		return m, errors.New("a model without a name that can be asked for")
	}
	m.DisplayName = truncate(m.DisplayName, maxListedName)
	return m, nil
}

// textInto reads a string or null.
func (r *Reader) textInto(into *string) error {
	s, err := r.text()
	*into = s
	return err
}

// createdAt reads a time of RFC 3339. A value of another form says nothing.
func (r *Reader) createdAt(m *ListedModel) error {
	if r.kind() != '"' {
		return r.skip()
	}
	s, err := r.text()
	if at, bad := time.Parse(time.RFC3339, s); bad == nil {
		m.Created = at.UTC()
	}
	return err
}
