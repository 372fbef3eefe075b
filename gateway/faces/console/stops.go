package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
)

// stopsData are the stops, what has become of the last act, and why what was sent did not count.
type stopsData struct {
	List    admin.StopList
	Names   names
	Done    *admin.StopAnswer
	Resumed bool
	Problem *refusal.Error
}

func (c *Console) stops(w http.ResponseWriter, r *request) *refusal.Error {
	return c.showStops(w, r, stopsData{}, selected(r, "principal", "agent", "project", "tool", "thread"))
}

// showStops shows the stops, below what the form has done.
func (c *Console) showStops(w http.ResponseWriter, r *request, data stopsData, form url.Values) (refused *refusal.Error) {
	if data.List, refused = ask[admin.StopList](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/stops"}); refused != nil {
		return refused
	}
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	data.Names = namesOf(&config)
	status, live := http.StatusOK, "standing"
	if data.Problem != nil {
		status = data.Problem.Status()
	}
	if data.Problem != nil || data.Done != nil {
		live = "" // fetching it again would fetch another page
	}
	c.show(w, r, status, "stops", page{Title: "Stops", Live: live, Data: data, Form: form})
	return nil
}

// stop stops what the form says.
func (c *Console) stop(w http.ResponseWriter, r *request) *refusal.Error {
	form, refused := formOf(w, r)
	if refused != nil {
		return refused
	}
	field := func(name string) string { return strings.TrimSpace(form.Get(name)) }
	workspace, project, _ := strings.Cut(field("project"), "/")
	return c.act(w, r, form, false, admin.Ask{Method: http.MethodPost, Path: "/v1/stops", Body: admin.StopBody{
		Principal: field("principal"), Agent: field("agent"), Workspace: workspace, Project: project, Tool: field("tool"),
		Thread:     field("thread"),
		Everything: form.Get("everything") != "", For: field("for"), Reason: strings.ReplaceAll(field("reason"), "\r\n", "\n"),
	}})
}

func (c *Console) resume(w http.ResponseWriter, r *request) *refusal.Error {
	return c.act(w, r, url.Values{}, true,
		admin.Ask{Method: http.MethodDelete, Path: "/v1/stops/{id}", Wildcards: map[string]string{"id": r.PathValue("id")}})
}

// act asks for a stop or a resumption, and shows what came of it.
func (c *Console) act(w http.ResponseWriter, r *request, form url.Values, resumed bool, a admin.Ask) *refusal.Error {
	done, problem := ask[admin.StopAnswer](c, r, a)
	if problem != nil {
		return c.showStops(w, r, stopsData{Problem: problem}, form)
	}
	return c.showStops(w, r, stopsData{Done: &done, Resumed: resumed}, url.Values{})
}
