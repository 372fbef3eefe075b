package identity_test

import (
	"errors"
	"testing"
	"time"

	"github.com/callgate/callgate/identity"
)

func TestOptions(t *testing.T) {
	good := identity.TokenOptions{Issuer: "https://issuer.example/realms/acme", Audience: audience}
	for name, change := range map[string]func(*identity.TokenOptions){
		"as it is":           func(*identity.TokenOptions) {},
		"loopback":           func(o *identity.TokenOptions) { o.Issuer = "http://127.0.0.1:9000" },
		"loopback of IPv6":   func(o *identity.TokenOptions) { o.Issuer = "http://[::1]:9000/" },
		"localhost":          func(o *identity.TokenOptions) { o.Issuer = "http://localhost:9000/" },
		"a URN and a file":   func(o *identity.TokenOptions) { o.Issuer, o.JWKSFile = "urn:example", "keys.json" },
		"a URL with a query": func(o *identity.TokenOptions) { o.JWKSURL = "https://issuer.example/keys?p=a" },
		"all algorithms": func(o *identity.TokenOptions) {
			o.Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
		},
		"the most skew":        func(o *identity.TokenOptions) { o.ClockSkew = 2 * time.Minute },
		"sub is another claim": func(o *identity.TokenOptions) { o.Claims.Name = "email" },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		change func(*identity.TokenOptions)
		option string
	}{
		"no issuer":                {func(o *identity.TokenOptions) { o.Issuer = "" }, "issuer"},
		"no issuer, a file":        {func(o *identity.TokenOptions) { o.Issuer, o.JWKSFile = "", "keys.json" }, "issuer"},
		"http beyond loopback":     {func(o *identity.TokenOptions) { o.Issuer = "http://issuer.example" }, "issuer"},
		"http to a like name":      {func(o *identity.TokenOptions) { o.Issuer = "http://localhost.example" }, "issuer"},
		"http to 0.0.0.0":          {func(o *identity.TokenOptions) { o.Issuer = "http://0.0.0.0" }, "issuer"},
		"an issuer with a query":   {func(o *identity.TokenOptions) { o.Issuer = "https://issuer.example?a=" + canary }, "issuer"},
		"an issuer with a #":       {func(o *identity.TokenOptions) { o.Issuer = "https://issuer.example#a" }, "issuer"},
		"an issuer with a # apart": {func(o *identity.TokenOptions) { o.Issuer, o.JWKSFile = "a#b", "keys.json" }, "issuer"},
		"an issuer with a user":    {func(o *identity.TokenOptions) { o.Issuer = "https://a:" + canary + "@issuer.example" }, "issuer"},
		"an issuer with a space":   {func(o *identity.TokenOptions) { o.Issuer = "https://issuer.example/ a" }, "issuer"},
		"an issuer that is a path": {func(o *identity.TokenOptions) { o.Issuer = "/etc/passwd" }, "issuer"},
		"an issuer of a file":      {func(o *identity.TokenOptions) { o.Issuer = "file:///etc/passwd" }, "issuer"},
		"a file and a URL":         {func(o *identity.TokenOptions) { o.JWKSFile, o.JWKSURL = "keys.json", "https://issuer.example" }, "jwks_url"},
		"keys by http":             {func(o *identity.TokenOptions) { o.JWKSURL = "http://issuer.example/keys" }, "jwks_url"},
		"keys with a user":         {func(o *identity.TokenOptions) { o.JWKSURL = "https://a:" + canary + "@issuer.example/keys" }, "jwks_url"},
		"no audience":              {func(o *identity.TokenOptions) { o.Audience = "" }, "audience"},
		"an audience with a space": {func(o *identity.TokenOptions) { o.Audience = audience + " " }, "audience"},
		"algorithm none":           {func(o *identity.TokenOptions) { o.Algorithms = []string{"none"} }, "algorithms"},
		"algorithm HS256":          {func(o *identity.TokenOptions) { o.Algorithms = []string{"RS256", "HS256"} }, "algorithms"},
		"algorithm in lower case":  {func(o *identity.TokenOptions) { o.Algorithms = []string{"rs256"} }, "algorithms"},
		"an algorithm twice":       {func(o *identity.TokenOptions) { o.Algorithms = []string{"RS256", "RS256"} }, "algorithms"},
		"no algorithm":             {func(o *identity.TokenOptions) { o.Algorithms = []string{} }, "algorithms"},
		"skew below zero":          {func(o *identity.TokenOptions) { o.ClockSkew = -1 }, "clock_skew"},
		"too much skew":            {func(o *identity.TokenOptions) { o.ClockSkew = 2*time.Minute + 1 }, "clock_skew"},
		"refresh below zero":       {func(o *identity.TokenOptions) { o.Refresh = -time.Second }, "refresh"},
		"refresh too often":        {func(o *identity.TokenOptions) { o.Refresh = time.Second }, "refresh"},
		"keys kept too briefly":    {func(o *identity.TokenOptions) { o.StaleIfError = time.Minute }, "stale_if_error"},
		"keys kept too long":       {func(o *identity.TokenOptions) { o.StaleIfError = 1000 * time.Hour }, "stale_if_error"},
		"a long timeout":           {func(o *identity.TokenOptions) { o.Timeout = time.Hour }, "timeout"},
		"a long start":             {func(o *identity.TokenOptions) { o.StartupTimeout = time.Hour }, "startup_timeout"},
		"name from aud":            {func(o *identity.TokenOptions) { o.Claims.Name = "aud" }, "claims.name"},
		"agents from sub":          {func(o *identity.TokenOptions) { o.Claims.Agents = "sub" }, "claims.agents"},
		"workspace from iss":       {func(o *identity.TokenOptions) { o.Claims.Workspace = "iss" }, "claims.workspace"},
		"projects from agents":     {func(o *identity.TokenOptions) { o.Claims.Projects = "callgate_agents" }, "claims.projects"},
		"a claim with NUL":         {func(o *identity.TokenOptions) { o.Claims.Agents = "a\x00" }, "claims.agents"},
	} {
		o := good
		c.change(&o)
		err := o.Validate()
		var fault *identity.OptionError
		if !errors.As(err, &fault) || fault.Option != c.option {
			t.Errorf("%s: %v, want a fault of %s", name, err, c.option)
			continue
		}
		quiet(t, err.Error())
		if tokens, err := identity.NewTokenVerifier(o); tokens != nil || err == nil {
			t.Errorf("%s: a verifier is made", name)
		}
	}
	if err := (identity.TokenOptions{}).Validate(); err == nil {
		t.Error("the zero options are taken")
	}
	// Every fault is told at once.
	all, ok := identity.TokenOptions{ClockSkew: -1}.Validate().(interface{ Unwrap() []error })
	if !ok || len(all.Unwrap()) != 3 {
		t.Errorf("the faults of issuer, audience and clock_skew: %v", all)
	}
}

// TestNoSkewUnlessSaid: the zero value tolerates nothing.
func TestNoSkewUnlessSaid(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	o := optionsFor(i.URL)
	o.ClockSkew = 0
	tokens := started(t, o)
	for name, m := range map[string]members{
		"expires now": {"exp": epoch.Unix()}, "begins in a second": {"nbf": epoch.Unix() + 1}, "issued in a second": {"iat": epoch.Unix() + 1},
	} {
		if tokens.Authenticate(goodWith(i.URL, m)) != nil {
			t.Errorf("%s: let in", name)
		}
	}
	if tokens.Authenticate(goodWith(i.URL, members{"exp": epoch.Unix() + 1})) == nil {
		t.Error("a second left: refused")
	}
}
