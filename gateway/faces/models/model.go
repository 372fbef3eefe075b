package models

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// model is a model that can be requested.
type model struct {
	upstream.ListedModel
	owner string // the upstream
}

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func (m *model) openAI() openAIModel {
	created := int64(0)
	if !m.Created.IsZero() {
		created = m.Created.Unix()
	}
	return openAIModel{ID: m.ID, Object: "model", Created: created, OwnedBy: m.owner}
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// anthropic is the model in Anthropic's shape, where an unknown time is the epoch.
func (m *model) anthropic() anthropicModel {
	created := m.Created
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	return anthropicModel{Type: "model", ID: m.ID, DisplayName: cmp.Or(m.DisplayName, m.ID), CreatedAt: created.UTC().Format(time.RFC3339)}
}

// page is a part of the list, in the words of Anthropic's API.
type page struct {
	limit         int
	after, before string // ids; at most one of them
}

// maxPage is the longest page of Anthropic's API, and here also the default one.
const maxPage = 1000

// readPage reads the query of a list. The server refuses a name that stands twice.
func readPage(query url.Values) (page, *refusal.Error) {
	p := page{limit: maxPage, after: query.Get("after_id"), before: query.Get("before_id")}
	if query.Has("limit") {
		n, err := strconv.Atoi(query.Get("limit"))
		if err != nil || n < 1 || n > maxPage {
			return p, refusal.New(refusal.BadRequest, fmt.Sprintf("The limit of a list must be 1 to %d.", maxPage))
		}
		p.limit = n
	}
	if p.after != "" && p.before != "" {
		return p, refusal.New(refusal.BadRequest, "A list begins behind after_id, or ends before before_id; expected one of them.")
	}
	return p, nil
}

// of returns the models of the page, and whether there are more in its direction.
func (p page) of(all []model) ([]model, bool, *refusal.Error) {
	id := cmp.Or(p.after, p.before)
	at := slices.IndexFunc(all, func(m model) bool { return m.ID == id })
	switch {
	case id != "" && at < 0:
		return nil, false, refusal.New(refusal.BadRequest,
			"There is no model "+parser.Quote(id)+" in the list of models here, so no page begins or ends there.")
	case p.before != "":
		from := max(0, at-p.limit)
		return all[from:at], from > 0, nil
	}
	all = all[at+1:] // all of them without an id
	n := min(p.limit, len(all))
	return all[:n], n < len(all), nil
}
