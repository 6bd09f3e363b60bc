(* Loads native code into a running program. *)
let () =
  match Dynlink.loadfile Sys.argv.(1) with
  | () -> print_endline "loaded"
  | exception Dynlink.Error error -> prerr_endline (Dynlink.error_message error); exit 1
