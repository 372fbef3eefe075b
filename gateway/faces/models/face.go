// Package models lists the models that can be requested, in the shape of the API that asks.
//
//	GET /v1/models       the models that can be requested by name
//	GET /v1/models/{id}  one of them
//
// A request with the header anthropic-version gets the shape of Anthropic's API, every other that
// of OpenAI's. The list has the models that the configuration names, and of those that it allows
// by a wildcard the ones that the upstream says it has: it is asked for them at
// {base_url}/models, with its own credential, and its answer is kept for a while. A list is not a
// promise that a model answers, and a model that is not listed may answer: where an upstream
// could not be asked, the list has only the models named, and the log says so.
package models

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// Options are the settings of a face.
type Options struct {
	Executor *calls.Executor
	// Upstreams returns the models that can be requested now; a nil Set has none.
	Upstreams func() *upstream.Set
	// Client asks upstreams for their models; nil asks none.
	Client *upstream.Client
	// Log is told of upstreams that could not be asked; nil is slog.Default.
	Log *slog.Logger
	// Refuse writes a refusal in OpenAI's shape, and RefuseAnthropic in Anthropic's; nil is
	// Refuse.
	Refuse, RefuseAnthropic func(*gin.Context, *refusal.Error)
	// Wait is how long a request waits for upstreams; 0 is 2 s. Clients of Anthropic's API wait
	// 3 s for the list (AM-05).
	Wait time.Duration
	Now  func() time.Time // nil is time.Now
}

const defaultWait = 2 * time.Second

// Face answers requests. It is safe for concurrent use.
type Face struct {
	options Options
	lists   lists
}

// New returns the face of a kernel.
func New(options Options) *Face {
	if options.RefuseAnthropic == nil {
		options.RefuseAnthropic = options.Refuse
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Wait = cmp.Or(options.Wait, defaultWait)
	return &Face{options: options, lists: lists{client: options.Client, log: options.Log, wait: options.Wait, now: options.Now}}
}

const path = "/v1/models"

// Mount mounts the routes of the face.
func (f *Face) Mount(s *server.Server) {
	// A name may have slashes, also as they are.
	for route, serve := range map[string]func(*gin.Context, server.Request){path: f.list, path + "/*id": f.find} {
		s.Mount(server.Route{
			Method: http.MethodGet, Path: route, Refuse: f.refuse, Serve: serve, APIKey: true,
			Query: []string{"after_id", "before_id", "beta", "limit"},
		})
	}
}

// headerAnthropic is one that every request of Anthropic's API has.
const headerAnthropic = "Anthropic-Version"

func isAnthropic(c *gin.Context) bool { return len(c.Request.Header[headerAnthropic]) > 0 }

// refuse answers a request in the shape of its API.
func (f *Face) refuse(c *gin.Context, refused *refusal.Error) {
	if isAnthropic(c) {
		f.options.RefuseAnthropic(c, refused)
		return
	}
	f.options.Refuse(c, refused)
}

// list answers with the models that can be requested.
func (f *Face) list(c *gin.Context, request server.Request) {
	if _, err := f.options.Executor.Kernel.Admit(c.Request.Context(), request.Request); err != nil {
		f.refuse(c, refusal.From(refusal.Any, err))
		return
	}
	if isAnthropic(c) {
		f.listAnthropic(c)
		return
	}
	if refused := checkOpenAI(c); refused != nil {
		f.refuse(c, refused)
		return
	}
	list := struct {
		Object string        `json:"object"`
		Data   []openAIModel `json:"data"`
	}{"list", []openAIModel{}}
	for _, m := range f.lists.models(c.Request.Context(), f.options.Upstreams(), openAI) {
		list.Data = append(list.Data, m.openAI())
	}
	f.answer(c, list)
}

// listAnthropic answers with a page of the list.
func (f *Face) listAnthropic(c *gin.Context) {
	p, refused := readPage(c.Request.URL.Query())
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	all, more, refused := p.of(f.lists.models(c.Request.Context(), f.options.Upstreams(), anthropic))
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	list := struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{Data: []anthropicModel{}, HasMore: more}
	for _, m := range all {
		list.Data = append(list.Data, m.anthropic())
	}
	if n := len(all); n > 0 {
		list.FirstID, list.LastID = &all[0].ID, &all[n-1].ID
	}
	f.answer(c, list)
}

// find answers with one model.
func (f *Face) find(c *gin.Context, request server.Request) {
	if _, err := f.options.Executor.Kernel.Admit(c.Request.Context(), request.Request); err != nil {
		f.refuse(c, refusal.From(refusal.Any, err))
		return
	}
	by, refused := openAI, checkOpenAI(c)
	if isAnthropic(c) {
		by, refused = anthropic, nil
	}
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	id := strings.TrimPrefix(c.Request.URL.Path, path+"/") // decoded once, unlike the parameter
	for _, m := range f.lists.models(c.Request.Context(), f.options.Upstreams(), by) {
		switch {
		case m.ID != id:
		case by == anthropic:
			f.answer(c, m.anthropic())
			return
		default:
			f.answer(c, m.openAI())
			return
		}
	}
	f.refuse(c, refusal.New(refusal.NotFound, "There is no model "+parser.Quote(id)+" in the list of models here. GET /v1/models has the list; the operator adds one to models of an upstream."))
}

// checkOpenAI refuses the query that only Anthropic's API has.
func checkOpenAI(c *gin.Context) *refusal.Error {
	if c.Request.URL.RawQuery == "" {
		return nil
	}
	return refusal.New(refusal.BadRequest, "The path has a query; it means something only with the header anthropic-version.")
}

func (f *Face) answer(c *gin.Context, value any) {
	body, err := wrapper.Marshal(value)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Any, err))
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", append(body, '\n'))
}
