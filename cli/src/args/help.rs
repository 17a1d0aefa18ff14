//! What stands below the flags in the help of a command.

pub(super) const DECIDE_HELP: &str = "\
Output:
  table  a line for each operation: what, which pod, by which rule, and why
  json   an object on a line of its own for each ReplicaSet, by namespace and name:
         replicaSet, creates{count,names}, deletes[{name,reason{rule,detail}}],
         adopts, releases, status (as Kubernetes writes it, null if no write is
         needed), requeueAfterSeconds, quarantined.
         `deletes` are in the order of choice, all other lists in that of names.

Rules of `deletes`, the first that tells a victim from the next pod:
  ALL_GO UNASSIGNED PHASE NOT_READY DELETION_COST CROWDED_NODE READY_RECENTLY
  RESTARTS CREATED_RECENTLY UID

Exit codes:
  0  decided, including the decision to quarantine
  1  the ReplicaSet is not in the input, or the output cannot be written
  2  invalid command line or input; the message names file, document and field";

pub(super) const DIFF_HELP: &str = "\
Exit codes:
  0  no differences, or none that --fail-on names
  1  there are some, or the output cannot be written
  2  invalid command line, or no agent in mode shadow is connected
  3  the server cannot be reached, or stopped responding
  4  the server refused";

pub(super) const REPLAY_HELP: &str = "\
Output:
  table  for each difference the time, the ReplicaSet, what was recorded, and what
         this version decides
  json   an object on a line of its own for each difference, and one for each
         file behind its differences:
         difference{file,time,recorded,decided,after[{time,input,frame}]}
         summary{file,cluster,session,serverVersion,differences,decisions{
         batches,creates,deletes,adopts,releases,statusWrites},framesIn,
         framesOut,ending,tornAt}
         Frames are canonical proto3 JSON of the contract; `after` is empty
         without --explain.

Exit codes:
  0  all decisions agree, up to the tear where a recording is torn
  1  some differ, or the output cannot be written
  2  a file cannot be read, is no recording, or is damaged";

pub(super) const CHECK_HELP: &str = "\
Exit codes:
  0  no check failed
  1  a check failed, or the output cannot be written
  2  invalid command line";
