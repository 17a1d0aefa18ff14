{{- define "decree.labels" -}}
app.kubernetes.io/name: decree
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "decree.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* Of each container: what it is made from, and what it may. */}}
{{- define "decree.container" -}}
image: {{ include "decree.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- /* Of each pod. Takes a dict with root; program, the values of that program; component; and daemon, whether it is of a
     DaemonSet. */}}
{{- define "decree.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .program.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .program.tolerations }}
tolerations:
  {{- toYaml .program.tolerations | nindent 2 }}
{{- else if .daemon }}
# As kube-proxy: whatever keeps other pods off a node, such as that it is a control plane, not ready or not initialized yet, may need
# pods of ReplicaSets to end.
tolerations:
  - operator: Exists
{{- end }}
{{- if .program.affinity }}
affinity:
  {{- toYaml .program.affinity | nindent 2 }}
{{- else if and .daemon (not .program.nodeSelector) }}
# The label has no value with kubeadm, and one with others.
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - key: node-role.kubernetes.io/control-plane
              operator: Exists
{{- end }}
{{- if not (or .daemon (eq .component "check")) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "decree.selector" .component | nindent 8 }}
{{- if not .program.affinity }}
# No constraint above: the scheduler leaves out all of them on a node that lacks one of their labels, and many clusters have no zones.
affinity:
  podAntiAffinity:
    {{- if and .root.Values.shards (eq .component "agent") }}
    # A StatefulSet replaces the pods of a lost node late, so no two agents of a shard may share a node.
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "decree.selector" .component | nindent 12 }}
    {{- end }}
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels:
              {{- include "decree.selector" .component | nindent 14 }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What selects the pods of a component. */}}
{{- define "decree.selector" -}}
app.kubernetes.io/name: decree
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* The name of the agents' Lease, as they take it from their flags. */}}
{{- define "decree.lease" -}}
{{- $name := "decree-agent" -}}
{{- range .Values.agent.args -}}
{{- if hasPrefix "--shard=" . -}}
{{- $name = printf "decree-agent-%s" (trimPrefix "--shard=" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.agent.args -}}
{{- if hasPrefix "--lease-name=" . -}}
{{- $name = trimPrefix "--lease-name=" . -}}
{{- end -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{- /* The liveness probe of a program. Takes the name of its admin port. */}}
{{- define "decree.liveness" -}}
livenessProbe:
  httpGet:
    path: /livez
    port: {{ . }}
  timeoutSeconds: 5
{{- end }}

{{- /* The volume with the credentials of a service account, for the one container that mounts it. */}}
{{- define "decree.credentials" -}}
- name: credentials
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{- /* How a client of topology separate reaches the servers, as the variables of a container. */}}
{{- define "decree.connection" -}}
- name: DECREE_SERVER
  value: https://decree-server:50051
{{- if .Values.tokens.enabled }}
- name: DECREE_TOKEN_FILE
  value: /var/run/secrets/decree/token
{{- else }}
- name: DECREE_TLS_CERT
  value: /etc/decree/tls/tls.crt
- name: DECREE_TLS_KEY
  value: /etc/decree/tls/tls.key
{{- end }}
- name: DECREE_TLS_CA
  value: /etc/decree/tls/ca.crt
{{- end }}

{{- /* What tokens are for: these servers and no others. */}}
{{- define "decree.audience" -}}
{{- .Values.tokens.audience | default (printf "decree-server.%s" .Release.Namespace) | quote }}
{{- end }}

{{- /* The volumes of such a client. */}}
{{- define "decree.connection-volumes" -}}
{{- if .Values.tokens.enabled -}}
# The CA of the servers' certificate, and not its key.
- name: tls
  secret:
    secretName: {{ .Values.tls.serverSecret | quote }}
    # 0440, so that YAML of any version reads the same.
    defaultMode: 288
    items:
      - key: ca.crt
        path: ca.crt
- name: token
  projected:
    sources:
      - serviceAccountToken:
          audience: {{ include "decree.audience" . }}
          expirationSeconds: 3600
          path: token
{{- else -}}
# Its keys are those that cert-manager writes: tls.crt, tls.key, ca.crt.
- name: tls
  secret:
    secretName: {{ .Values.tls.agentSecret | quote }}
    # 0440, so that YAML of any version reads the same.
    defaultMode: 288
{{- end }}
{{- end }}

{{- /* The mounts of these volumes. */}}
{{- define "decree.connection-mounts" -}}
- name: tls
  mountPath: /etc/decree/tls
  readOnly: true
{{- if .Values.tokens.enabled }}
- name: token
  mountPath: /var/run/secrets/decree
  readOnly: true
{{- end }}
{{- end }}
