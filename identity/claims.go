package identity

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/callgate/callgate/internal/rawjson"
)

// maxNames bounds the agents and the projects of one token.
const maxNames = 100

// errClaim is a claim of the wrong form. It names no claim: the text of an error must not
// come from the sender of the token.
var errClaim = errors.New("identity: a claim is of the wrong form")

// claims are the members of a token's second segment. They implement
// jwt.Claims for jwt.Validator.
type claims map[string]json.RawMessage

// maxDate is the end of the year 9999 in seconds since 1970.
const maxDate = 253402300799

// date reads a NumericDate (RFC 7519, section 2). One that is no number, or
// outside the years 1970 to 9999, is refused, whichever claim it is.
func (c claims) date(name string) (*jwt.NumericDate, error) {
	raw, ok := c[name]
	if !ok {
		return nil, nil
	}
	// ParseFloat reads every JSON number, and no other JSON value.
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds < 0 || seconds > maxDate {
		return nil, errClaim
	}
	return &jwt.NumericDate{Time: time.UnixMilli(int64(seconds * 1000))}, nil
}

func (c claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.date("exp") }
func (c claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.date("nbf") }
func (c claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.date("iat") }

func (c claims) GetIssuer() (string, error)  { return c.string("iss") }
func (c claims) GetSubject() (string, error) { return c.string("sub") }

func (c claims) string(name string) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", nil
	}
	s, ok := jsonString(raw)
	if !ok {
		return "", errClaim
	}
	return s, nil
}

// GetAudience reads a string or a list of strings (RFC 7519, section 4.1.3).
func (c claims) GetAudience() (jwt.ClaimStrings, error) {
	raw, ok := c["aud"]
	if !ok {
		return nil, nil
	}
	if s, ok := jsonString(raw); ok {
		return jwt.ClaimStrings{s}, nil
	}
	list, ok := jsonStrings(raw)
	if !ok {
		return nil, errClaim
	}
	return list, nil
}

// jsonStrings reads a list of at most maxNames strings.
func jsonStrings(raw json.RawMessage) ([]string, bool) {
	elements, ok := rawjson.Elements(raw)
	if !ok {
		return nil, false
	}
	list := []string{}
	for i, element := range elements {
		s, ok := jsonString(element)
		if !ok || i == maxNames {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// names reads a claim that is a list of names, or one string of names between
// single spaces (the form of scope in RFC 6749, section 3.3). There is at least
// one, and none is repeated.
func (c claims) names(claim string) ([]string, bool) {
	raw := c[claim]
	list, ok := jsonStrings(raw)
	if !ok {
		joined, isText := jsonString(raw)
		if !isText {
			return nil, false
		}
		list = strings.Split(joined, " ")
	}
	if len(list) == 0 || len(list) > maxNames {
		return nil, false
	}
	for i, name := range list {
		if !isName(name) || slices.Contains(list[:i], name) {
			return nil, false
		}
	}
	return list, true
}

// tokenPrefix starts the names of all principals of tokens, and of no others.
const tokenPrefix = "jwt:"

// Subject returns the subject of the token of a principal, by the principal's name; empty for
// one that is not of a token. No issuer has a # in it (see TokenOptions).
func Subject(principal string) string {
	name, ofToken := strings.CutPrefix(principal, tokenPrefix)
	if !ofToken {
		return ""
	}
	_, subject, _ := strings.Cut(name, "#")
	return subject
}

// rolePrefix starts the names of roles in a policy. No agent may have such a name.
const rolePrefix = "role:"

// principal reads the principal from the claims. An absent claim never means everything.
// Agents, workspace and projects are required, but for an operator, or someone who
// approves calls, whose token has none of the three: they may act for no agent.
func (c claims) principal(issuer string, names ClaimNames) (*Principal, bool) {
	name, ok := jsonString(c[names.Name])
	if !ok || !isASCIIName(name) {
		return nil, false
	}
	p := &Principal{Name: tokenPrefix + issuer + "#" + name}
	if raw, stated := c[names.Operator]; stated {
		p.Operator = string(raw) == "true"
		if !p.Operator && string(raw) != "false" {
			return nil, false
		}
	}
	if raw, stated := c[names.Approves]; stated {
		if none, isList := jsonStrings(raw); !isList || len(none) > 0 {
			if p.Approves, ok = c.names(names.Approves); !ok {
				return nil, false
			}
		}
	}
	if (p.Operator || len(p.Approves) > 0) && !c.hasAny(names.Agents, names.Workspace, names.Projects) {
		return p, true
	}
	return p, c.reach(p, names)
}

// hasAny reports whether one of these claims is there.
func (c claims) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, stated := c[name]; return stated })
}

// reach reads the agents, the workspace and the projects of a principal.
func (c claims) reach(p *Principal, names ClaimNames) (ok bool) {
	p.Agents, ok = c.names(names.Agents)
	if !ok || slices.ContainsFunc(p.Agents, func(a string) bool { return strings.HasPrefix(a, rolePrefix) }) {
		return false
	}
	p.Workspace, ok = jsonString(c[names.Workspace])
	if !ok || !isName(p.Workspace) {
		return false
	}
	p.Projects, ok = c.names(names.Projects)
	return ok
}
