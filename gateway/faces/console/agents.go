package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

const (
	agentTime   = 60 * time.Millisecond
	agentCalls  = 12  // decisions on the page of an agent
	agentTools  = 500 // tools of which the page says whether the agent may use them
	agentLimits = 500 // limits of each kind among which the agent's are looked for

	reachNever = "never" // as the API says that an agent may not use a tool
)

// agentData is what an agent may do and did, its limits, and what is stopped of it.
type agentData struct {
	Name      string
	Known     bool // a project or a principal of the configuration names it
	Did       admin.Decisions
	Places    []agentPlace
	MoreTools int // how many tools were looked at, where there are more
	Limits    []admin.Limit
	Budgets   []admin.Budget
	Problem   string // why limits cannot be read
	Stops     []store.Stop
}

// agentPlace is what an agent may use in one project.
type agentPlace struct {
	Workspace, Project string
	Tools              []agentTool
	Never              []string // tools that it may not use there
}

type agentTool struct {
	Name, Version, Reach string
	Quarantined          bool
}

func (c *Console) agent(w http.ResponseWriter, r *request) *refusal.Error {
	data := agentData{Name: r.PathValue("name")}
	config, refused := ask[admin.Configuration](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/config"})
	if refused != nil {
		return refused
	}
	data.Known = slices.Contains(config.Agents, data.Name)
	query := url.Values{"agent": {data.Name}, "limit": {strconv.Itoa(agentCalls)}}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(c.options.AgentTime, agentTime))
	defer cancel()
	search := &request{r.WithContext(ctx), r.caller, r.session}
	if data.Did, refused = ask[admin.Decisions](c, search,
		admin.Ask{Method: http.MethodGet, Path: "/v1/decisions", Query: query}); refused != nil {
		return refused
	}
	if !data.Known && len(data.Did.Decisions) == 0 && data.Did.Next == 0 {
		return refusal.New(refusal.NotFound, "Neither the configuration in force nor the audit log of this gateway has such an agent.")
	}
	for _, add := range []func(*request, *agentData) *refusal.Error{c.addTools, c.addLimits, c.addStops} {
		if refused := add(r, &data); refused != nil {
			return refused
		}
	}
	c.show(w, r, http.StatusOK, "agent", page{Title: "Agent " + data.Name, Live: "decisions config standing", Data: data})
	return nil
}

func (c *Console) addTools(r *request, data *agentData) *refusal.Error {
	list, refused := ask[admin.Tools](c, r,
		admin.Ask{Method: http.MethodGet, Path: "/v1/tools", Query: url.Values{"limit": {strconv.Itoa(agentTools)}}})
	if refused != nil {
		return refused
	}
	if list.Next != 0 {
		data.MoreTools = len(list.Tools)
	}
	for i, p := range list.Places {
		if p.Agent != data.Name {
			continue
		}
		place := agentPlace{Workspace: p.Workspace, Project: p.Project}
		for j := range list.Tools {
			t := &list.Tools[j]
			if t.Reach[i] == reachNever {
				place.Never = append(place.Never, t.Name)
				continue
			}
			place.Tools = append(place.Tools, agentTool{t.Name, t.Version, t.Reach[i], t.Quarantined})
		}
		data.Places = append(data.Places, place)
	}
	return nil
}

func (c *Console) addLimits(r *request, data *agentData) *refusal.Error {
	for _, kind := range admin.LimitKinds() {
		if !countsAgents(kind) && kind != admin.KindBudget {
			continue
		}
		query := url.Values{"kind": {kind}, "limit": {strconv.Itoa(agentLimits)}}
		list, refused := ask[admin.Limits](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/limits", Query: query})
		if refused != nil {
			return refused
		}
		data.Problem = list.Problem
		for i := range list.Limits {
			if list.Limits[i].Name == data.Name {
				data.Limits = append(data.Limits, list.Limits[i])
			}
		}
		for i := range list.Budgets {
			if b := &list.Budgets[i]; b.Per == budget.PerAgent && b.Name == data.Name {
				data.Budgets = append(data.Budgets, *b)
			}
		}
	}
	return nil
}

// countsAgents reports whether limits of a kind are each an agent's.
func countsAgents(kind string) bool {
	return slices.Contains([]ratelimit.LevelKind{ratelimit.LevelAgent, ratelimit.LevelAgentTool, ratelimit.LevelSlots},
		ratelimit.LevelKind(kind))
}

func (c *Console) addStops(r *request, data *agentData) *refusal.Error {
	list, refused := ask[admin.StopList](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/stops"})
	if refused != nil {
		return refused
	}
	// A stop that names no agent stops it too.
	data.Stops = slices.DeleteFunc(list.Stops, func(s store.Stop) bool { return s.Agent != "" && s.Agent != data.Name })
	return nil
}
