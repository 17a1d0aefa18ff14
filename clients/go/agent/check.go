package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	v1 "github.com/decree-dev/decree/clients/go/decree/v1"
)

// checkReplicaSet refuses a ReplicaSet that cannot be sent, and one that an API server would not admit: its pods would not belong to it, so the
// server would replace them endlessly.
func checkReplicaSet(one *v1.ReplicaSet) error {
	if one == nil {
		return errors.New("ReplicaSet: it is nil")
	}
	if one.Uid == "" {
		return fmt.Errorf("ReplicaSet %q/%q: uid: it is empty", one.Namespace, one.Name)
	}
	if err := checkText(one); err != nil {
		return fmt.Errorf("ReplicaSet %q/%q: %w", one.Namespace, one.Name, err)
	}
	err := checkSelector(one.Selector)
	if err == nil {
		if why := mismatch(one.Selector, one.TemplateLabels); why != "" {
			err = errors.New("template_labels: the selector does not match them: " + why)
		}
	}
	if err != nil {
		return fmt.Errorf("ReplicaSet %s/%s: %w", one.Namespace, one.Name, err)
	}
	return nil
}

func checkSelector(selector *v1.LabelSelector) error {
	if len(selector.GetMatchLabels())+len(selector.GetMatchExpressions()) == 0 {
		return errors.New("selector: it has no requirement")
	}
	for at, one := range selector.MatchExpressions {
		path := fmt.Sprintf("selector.match_expressions[%d]", at)
		switch one.GetOperator() {
		case "In", "NotIn":
			if len(one.Values) == 0 {
				return fmt.Errorf("%s.values: %s needs at least one", path, one.Operator)
			}
		case "Exists", "DoesNotExist":
			if len(one.Values) > 0 {
				return fmt.Errorf("%s.values: %s takes none", path, one.Operator)
			}
		default:
			return fmt.Errorf("%s.operator: it is %q, and none of In, NotIn, Exists, DoesNotExist", path, one.GetOperator())
		}
	}
	return nil
}

// mismatch returns the first requirement of a selector that the labels do not meet, or "".
func mismatch(selector *v1.LabelSelector, labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(selector.GetMatchLabels())) {
		if value, is := labels[key]; !is || value != selector.MatchLabels[key] {
			return fmt.Sprintf("%s must be %q", key, selector.MatchLabels[key])
		}
	}
	for _, one := range selector.GetMatchExpressions() {
		value, is := labels[one.Key]
		isOneOf := is && slices.Contains(one.Values, value)
		meets := map[string]bool{"In": isOneOf, "NotIn": !isOneOf, "Exists": is, "DoesNotExist": !is}
		if !meets[one.Operator] {
			return fmt.Sprintf("%s %s", one.Key, one.Operator)
		}
	}
	return ""
}

// checkMade returns the fault of a pod that the Cluster created under a name, or "". The server would replace a pod that does not count for its
// ReplicaSet, without end. The Agent is locked.
func (a *Agent) checkMade(owner *v1.ReplicaSet, name string, pod *v1.Pod) string {
	switch known := a.view.pods[pod.GetUid()]; {
	case pod == nil:
		return "create returned no pod"
	case !isUID(pod.Uid):
		return "uid: it is not 1 to 128 printable ASCII characters"
	case pod.Name != "" && pod.Name != name:
		return fmt.Sprintf("name: it is %q where %q was asked for", pod.Name, name)
	case pod.Namespace != "" && pod.Namespace != owner.Namespace:
		return fmt.Sprintf("namespace: it is %q where %q was asked for", pod.Namespace, owner.Namespace)
	case pod.Controller.GetUid() != "" && pod.Controller.Uid != owner.Uid:
		return fmt.Sprintf("controller.uid: it is %q, and that of the ReplicaSet is %q", pod.Controller.Uid, owner.Uid)
	case known != nil && known.Name != name:
		return fmt.Sprintf("uid: it is that of the pod %s", known.Name)
	}
	if len(pod.Labels) > 0 {
		for _, key := range slices.Sorted(maps.Keys(owner.TemplateLabels)) {
			if value, is := pod.Labels[key]; !is || value != owner.TemplateLabels[key] {
				return fmt.Sprintf("labels: %s must be %q, as in the template", key, owner.TemplateLabels[key])
			}
		}
		if why := mismatch(owner.Selector, pod.Labels); why != "" {
			return "labels: the selector does not match them: " + why
		}
	}
	if err := checkText(pod); err != nil {
		return err.Error()
	}
	return ""
}

// checkText returns an error that names the text of a message that is not UTF-8. A message with one would end each session that sends it.
func checkText(message proto.Message) error {
	_, err := proto.Marshal(message)
	if err == nil {
		return nil
	}
	found := protorange.Range(message.ProtoReflect(), func(values protopath.Values) error {
		text, is := values.Index(-1).Value.Interface().(string)
		key := values.Index(-1).Step
		isBadKey := key.Kind() == protopath.MapIndexStep && !utf8.ValidString(key.MapIndex().String())
		if isBadKey || is && !utf8.ValidString(text) {
			return fmt.Errorf("%s: it is not UTF-8", strings.TrimPrefix(values.Path[1:].String(), "."))
		}
		return nil
	})
	return cmp.Or(found, err)
}

func isUID(uid string) bool {
	for _, char := range []byte(uid) {
		if char < ' ' || char > '~' {
			return false
		}
	}
	return len(uid) > 0 && len(uid) <= 128
}
