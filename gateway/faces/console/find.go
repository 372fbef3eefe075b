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
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	path, refused := c.pageOf(r, id)
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
	case strings.HasPrefix(id, "stop_"):
		return "/console/stops", nil
	case strings.HasPrefix(id, "grant_"):
		return "/console/approvals", nil
	}
	found, refused := ask[admin.ApprovalView](c, r, one("/v1/approvals/{id}", "id"))
	switch {
	case refused == nil && (stateOf(string(found.State)).Open || !r.caller.Operator):
		return "/console/approvals/" + escaped, nil
	case !r.caller.Operator:
		return "", refused
	}
	if strings.HasPrefix(id, "call_") {
		return "/console/calls/" + escaped, nil
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
	// Hooks and model faces take ids of the caller's own.
	if _, refused := ask[admin.Case](c, r, one("/v1/decisions/{call_id}", "call_id")); refused == nil {
		return "/console/calls/" + escaped, nil
	}
	return "", refusal.New(refusal.NotFound, "Nothing here has this id or name: no call in the log of this gateway, no approval or thread that is kept, and no tool or agent of the configuration.")
}
