package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
)

// find leads to the page of what has an id or a name.
func (c *Console) find(w http.ResponseWriter, r *request) *refusal.Error {
	id := strings.TrimRight(strings.TrimSpace(r.URL.Query().Get("id")), "\u2026") // tables cut ids so
	if r.URL.Query().Has("names") {
		return c.findNames(w, r)
	}
	path, refused := c.pageOf(r, id)
	if refused != nil && refused.Code == refusal.NotFound {
		c.show(w, r, refused.Status(), "problem", page{Title: "No match for " + cut(id), Data: refused})
		return nil
	}
	if refused != nil {
		return refused
	}
	http.Redirect(w, r.Request, path, http.StatusSeeOther)
	return nil
}

// pageOf is the page of an id or a name. The id of an approval is that of the call that asked: it
// leads to the approval while that can be decided.
func (c *Console) pageOf(r *request, id string) (string, *refusal.Error) {
	one := func(path, wildcard string) admin.Ask {
		return admin.Ask{Method: http.MethodGet, Path: path, Wildcards: map[string]string{wildcard: id}}
	}
	escaped := url.PathEscape(id)
	switch {
	case strings.Trim(id, ".") == "":
		return "/console/calls", nil
	case strings.HasPrefix(strings.ToLower(id), "stop_"):
		return "/console/stops", nil
	case strings.HasPrefix(strings.ToLower(id), "grant_"):
		return "/console/approvals", nil
	}
	about, refused := ask[admin.ApprovalView](c, r, one("/v1/approvals/{id}", "id"))
	switch {
	case refused == nil && (stateOf(string(about.State)).Open || !r.caller.Operator):
		return "/console/approvals/" + escaped, nil
	case !r.caller.Operator:
		return "", refused
	}
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	switch {
	case refused != nil:
		return "", refused
	case slices.Contains(config.Agents, id):
		return agentPath(id), nil
	case slices.Contains(config.ToolNames, id):
		return toolPath(id), nil
	}
	if _, refused := ask[admin.Thread](c, r, one("/v1/threads/{id}", "id")); refused == nil {
		return "/console/threads/" + escaped, nil
	}
	exact, refused := ask[admin.Case](c, r, one("/v1/decisions/{call_id}", "call_id"))
	if refused != nil && refused.Code != refusal.NotFound {
		return "", refused
	}
	if refused == nil && (len(exact.Records) > 0 || len(exact.Stages) > 0) {
		return "/console/calls/" + escaped, nil
	}
	switch names := namesBeginning(&config, id); len(names) {
	case 0:
	case 1:
		return names[0].Path, nil
	default:
		return link("/console/find", "names", id), nil
	}
	path, unread := c.beginningWith(r, id)
	switch {
	case path != "" || unread != nil:
		return path, unread
	case refused == nil: // the log goes on
		return "/console/calls/" + escaped, nil
	}
	return "", refusal.New(refusal.NotFound, "Nothing here has this id or name, or begins with it: no call in the log of this gateway, no approval or thread that is kept, and no tool or agent of the configuration.")
}

// found is an agent or a tool, and its page.
type found struct{ Kind, Name, Path string }

// namesBeginning are the agents and tools whose names begin so, in any case.
func namesBeginning(config *admin.Configuration, beginning string) (list []found) {
	add := func(kind string, names []string, path func(string) string) {
		for _, name := range names {
			if len(list) < maxNames && strings.HasPrefix(strings.ToLower(name), strings.ToLower(beginning)) {
				list = append(list, found{kind, name, path(name)})
			}
		}
	}
	add("agent", config.Agents, agentPath)
	add("tool", config.ToolNames, toolPath)
	return list
}

// findNames shows the agents and tools whose names begin as asked for.
func (c *Console) findNames(w http.ResponseWriter, r *request) *refusal.Error {
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	beginning := r.URL.Query().Get("names")
	c.show(w, r, http.StatusOK, "found", page{Title: "Names that begin with " + cut(beginning), Data: namesBeginning(&config, beginning)})
	return nil
}

// beginningWith is the page of the one call or thread whose id begins so, in any case and with or without its prefix, or whose trace has
// the id; the calls, where several do; empty, where none does.
func (c *Console) beginningWith(r *request, id string) (string, *refusal.Error) {
	for _, beginning := range []string{id, "call_" + id} {
		calls, refused := ask[admin.Decisions](c, r,
			admin.Ask{Method: http.MethodGet, Path: "/v1/decisions", Query: url.Values{"id": {beginning}, "limit": {"2"}}})
		switch list := calls.Decisions; {
		case refused != nil:
			return "", refused
		case len(list) > 1:
			return link("/console/calls", "id", beginning), nil
		case len(list) == 1 && list[0].CallID != id:
			return c.pageOf(r, list[0].CallID)
		}
	}
	threads, refused := ask[admin.ThreadList](c, r,
		admin.Ask{Method: http.MethodGet, Path: "/v1/threads", Query: url.Values{"limit": {"500"}}})
	if refused != nil {
		return "", refused
	}
	list := slices.DeleteFunc(threads.Threads, func(t admin.Thread) bool { return !strings.HasPrefix(t.ID, strings.ToLower(id)) })
	if len(list) == 1 {
		return "/console/threads/" + url.PathEscape(list[0].ID), nil
	}
	return "", nil
}
