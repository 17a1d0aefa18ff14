package dev.decree.agent;

import dev.decree.v1.LabelSelector;
import dev.decree.v1.LabelSelectorRequirement;
import dev.decree.v1.Pod;
import dev.decree.v1.ReplicaSet;
import java.util.Map;
import java.util.TreeMap;

/** Checks the objects of the controller by the rules of the Kubernetes API server. The server would replace pods that break these rules without end. */
final class Check {
    private Check() {}

    /** Throws for a ReplicaSet whose pods would not belong to it. The message names the field. */
    static void replicaSet(ReplicaSet one) {
        String fault = selectorFault(one.getSelector());
        if (fault.isEmpty()) {
            String why = mismatch(one.getSelector(), one.getTemplateLabelsMap());
            fault = why.isEmpty() ? "" : "template_labels: the selector does not match them: " + why;
        }
        if (!fault.isEmpty()) {
            throw new IllegalArgumentException("ReplicaSet " + one.getNamespace() + "/" + one.getName() + ": " + fault);
        }
    }

    private static String selectorFault(LabelSelector selector) {
        if (selector.getMatchLabelsCount() + selector.getMatchExpressionsCount() == 0) {
            return "selector: it has no requirement";
        }
        for (int at = 0; at < selector.getMatchExpressionsCount(); at++) {
            LabelSelectorRequirement one = selector.getMatchExpressions(at);
            String path = "selector.match_expressions[" + at + "]";
            String operator = one.getOperator();
            boolean hasValues = one.getValuesCount() > 0;
            String fault =
                    switch (operator) {
                        case "In", "NotIn" -> hasValues ? "" : path + ".values: " + operator + " needs at least one";
                        case "Exists", "DoesNotExist" -> hasValues ? path + ".values: " + operator + " takes none" : "";
                        default -> path + ".operator: it is " + quoted(operator) + ", and none of In, NotIn, Exists, DoesNotExist";
                    };
            if (!fault.isEmpty()) {
                return fault;
            }
        }
        return "";
    }

    /** Returns the first requirement of a selector that the labels do not meet, or an empty text. */
    private static String mismatch(LabelSelector selector, Map<String, String> labels) {
        for (var one : new TreeMap<>(selector.getMatchLabelsMap()).entrySet()) {
            if (!one.getValue().equals(labels.get(one.getKey()))) {
                return one.getKey() + " must be " + quoted(one.getValue());
            }
        }
        for (LabelSelectorRequirement one : selector.getMatchExpressionsList()) {
            String value = labels.get(one.getKey());
            boolean isOneOf = value != null && one.getValuesList().contains(value);
            boolean isMet =
                    switch (one.getOperator()) {
                        case "In" -> isOneOf;
                        case "NotIn" -> !isOneOf;
                        case "Exists" -> value != null;
                        default -> value == null;
                    };
            if (!isMet) {
                return one.getKey() + " " + one.getOperator();
            }
        }
        return "";
    }

    /**
     * Returns the fault of the result of {@code create} for a name, or an empty text. The server would replace a pod that does not count for its ReplicaSet.
     * `known` are the pods of the view by UID.
     */
    static String made(ReplicaSet owner, String name, Pod made, Map<String, Pod> known) {
        if (made == null) {
            return "create returned no pod";
        }
        String controller = made.getController().getUid();
        if (!made.getUid().matches("[ -~]{1,128}")) {
            return "uid: it is not 1 to 128 printable ASCII characters";
        }
        if (!made.getName().isEmpty() && !made.getName().equals(name)) {
            return "name: it is " + quoted(made.getName()) + " where " + quoted(name) + " was asked for";
        }
        if (!made.getNamespace().isEmpty() && !made.getNamespace().equals(owner.getNamespace())) {
            return "namespace: it is " + quoted(made.getNamespace()) + " where " + quoted(owner.getNamespace()) + " was asked for";
        }
        if (!controller.isEmpty() && !controller.equals(owner.getUid())) {
            return "controller.uid: it is " + quoted(controller) + ", and that of the ReplicaSet is " + quoted(owner.getUid());
        }
        Pod same = known.get(made.getUid());
        if (same != null && !same.getName().equals(name)) {
            return "uid: it is that of the pod " + same.getName();
        }
        return made.getLabelsCount() > 0 ? labelsFault(owner, made.getLabelsMap()) : "";
    }

    private static String labelsFault(ReplicaSet owner, Map<String, String> labels) {
        for (var one : new TreeMap<>(owner.getTemplateLabelsMap()).entrySet()) {
            if (!one.getValue().equals(labels.get(one.getKey()))) {
                return "labels: " + one.getKey() + " must be " + quoted(one.getValue()) + ", as in the template";
            }
        }
        String why = mismatch(owner.getSelector(), labels);
        return why.isEmpty() ? "" : "labels: the selector does not match them: " + why;
    }

    private static String quoted(String text) {
        return '"' + text + '"';
    }
}
