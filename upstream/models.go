package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Wildcards returns a route for each upstream that serves models by a prefix under the provider's
// own names, in the order of the definitions: ListModels says which models these are.
func (s *Set) Wildcards() []*Route {
	if s == nil {
		return nil
	}
	routes := make([]*Route, len(s.wildcards))
	for i, r := range s.wildcards {
		routes[i] = r.clone()
	}
	return routes
}

// ListModels asks the upstream of a route which models it has: GET {base_url}/models, in the
// shape of OpenAI's API or of Anthropic's. Of a list in several pages it returns the first,
// which Anthropic's API is asked to make as long as it makes any (AM-05). The list is read
// strictly, and is an error as a whole if one entry has no usable id. The error is one of Post.
func (c *Client) ListModels(ctx context.Context, route *Route, anthropic bool) (models []ListedModel, err error) {
	defer recoverPanic(&err)
	p := &posting{endpoint: listEndpoint, accept: typeJSON, get: true}
	if anthropic {
		p.query, p.header = "limit=1000", http.Header{"Anthropic-Version": {anthropicVersion}}
	}
	a, err := c.send(ctx, route, p)
	if err != nil {
		return nil, err
	}
	defer a.close()
	raw, err := a.readAll()
	if err != nil {
		return nil, transportError(a.timeouts.ctx, route.Upstream, err, true)
	}
	r := readers.Get().(*reader)
	defer r.release()
	models, err = r.readModels(raw)
	if err != nil {
		return nil, malformed("%s: its list of models: %w", route.Upstream, err)
	}
	return models, nil
}

// anthropicVersion is one that every server of Anthropic's API knows (AM-01). The list of models
// is the same in later ones.
const anthropicVersion = "2023-06-01"

// readModels parses {"data":[{"id":…}, …]} with other members beside.
func (r *reader) readModels(raw []byte) ([]ListedModel, error) {
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

func (r *reader) listedModel() (ListedModel, error) {
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
func (r *reader) textInto(into *string) error {
	s, err := r.text()
	*into = s
	return err
}

// createdAt reads a time of RFC 3339. A value of another form says nothing.
func (r *reader) createdAt(m *ListedModel) error {
	if r.kind() != '"' {
		return r.skip()
	}
	s, err := r.text()
	if at, bad := time.Parse(time.RFC3339, s); bad == nil {
		m.Created = at.UTC()
	}
	return err
}
