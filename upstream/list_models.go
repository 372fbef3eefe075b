package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/safe"
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
	maxListedName = 256
	maxListDepth  = 500
)

// ListModels asks the upstream of a route which models it has: GET {base_url}/models, in the
// shape of OpenAI's API or of Anthropic's. Of a list in several pages it returns the first,
// which Anthropic's API is asked to make as long as it makes any (AM-05). The list is read
// strictly, and is an error as a whole if one entry has no usable id. The error is one of Post.
func (c *Client) ListModels(ctx context.Context, route *Route, anthropic bool) (models []ListedModel, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	p := &posting{endpoint: listEndpoint, accept: typeJSON, get: true}
	if anthropic {
		p.query, p.header = "limit=1000", http.Header{"Anthropic-Version": {anthropicVersion}}
	}
	a, raw, err := c.receive(ctx, route, p)
	if err != nil {
		return nil, err
	}
	defer a.close()
	models, err = readModels(raw)
	if err != nil {
		return nil, malformed(route.Upstream, fmt.Errorf("a list of models with %w", err))
	}
	return models, nil
}

// anthropicVersion is one that every server of Anthropic's API knows (AM-01). The list of models
// is the same in later ones.
const anthropicVersion = "2023-06-01"

// readModels reads {"data":[{"id":…}, …]} with other members beside.
func readModels(raw []byte) (models []ListedModel, _ error) {
	if err := rawjson.Check(raw, maxListDepth); err != nil {
		return nil, err
	}
	answer, _ := rawjson.Members(raw)
	list, ok := rawjson.Elements(answer.Get("data"))
	if !ok {
		return nil, errors.New("an answer without \"data\"")
	}
	for i, raw := range list {
		m, err := readListed(raw)
		switch {
		case i == maxListed:
			return nil, fmt.Errorf("more than %d models", maxListed)
		case err != nil:
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

func readListed(raw []byte) (ListedModel, error) {
	o, _ := rawjson.Members(raw)
	var m ListedModel
	m.ID, _ = rawjson.String(o.Get("id"))
	if m.ID == "" || len(m.ID) > maxListedName || !ascii.IsVisible(m.ID) {
		return m, errors.New("a model without a name that can be asked for")
	}
	name, isText := rawjson.String(o.Get("display_name"))
	if o.Get("display_name") != nil && !isText {
		return m, errors.New("a display_name that is not a string")
	}
	m.DisplayName = truncate(name, maxListedName)
	if seconds, err := strconv.ParseFloat(string(o.Get("created")), 64); err == nil && seconds >= 1 && seconds <= 1<<53 {
		m.Created = time.Unix(int64(seconds), 0).UTC()
	}
	text, _ := rawjson.String(o.Get("created_at"))
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		m.Created = at.UTC()
	}
	return m, nil
}
