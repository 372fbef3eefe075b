package gateway

import (
	"context"
	"errors"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry/schema"
)

// checkBoundary is the second step: what the schema marks with x-boundary lies
// within what the project lists, and so do the folders that answers name.
func checkBoundary(_ context.Context, c *Call) error {
	if c.project == nil {
		return errors.New("no project was entered")
	}
	var values []schema.BoundaryValue
	if c.tool.HasBoundaries() && !c.tool.WithinJSON(c.parsed.Arguments, func(kind, value string) bool {
		return c.project.Bounds().Within(kind, value) == nil
	}) {
		values = c.tool.Boundaries(c.arguments())
	}
	var violations []refusal.Violation
	var places []parser.Place
	for _, v := range values {
		if len(violations) == maxViolations {
			break
		}
		err := c.project.Bounds().Within(v.Kind, v.Value)
		if err == nil {
			continue
		}
		var outside *boundary.OutsideError
		if !errors.As(err, &outside) {
			return err
		}
		places = append(places, parser.Place{Path: v.Path})
		violations = append(violations, refusal.Violation{Code: refusal.BoundaryViolation, Path: pointer(v.Path), Message: boundaryMessage(v.Path, outside)})
	}
	if len(violations) > 0 {
		c.offsets(violations, places)
	}
	outsiders, err := c.answers.Outside(c.project.Bounds(), maxViolations-len(violations))
	if err != nil {
		return err
	}
	violations = append(violations, outsiders...)
	if len(violations) == 0 {
		return nil
	}
	refusal.Sort(violations)
	refused := refusal.New(refusal.BoundaryViolation, refusal.Summary(violations))
	refused.Violations = violations
	return refused
}
