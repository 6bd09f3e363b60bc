(* Loaded by host.ml, and linked into embed.c. *)
let rec fibonacci n = if n < 2 then n else fibonacci (n - 1) + fibonacci (n - 2)

let () =
  let strings = Array.init 20000 (fun i -> "string " ^ string_of_int i) in
  Gc.full_major ();
  Array.iteri (fun i s -> assert (s = "string " ^ string_of_int i)) strings;
  Printf.printf "%d, %s\n%!" (fibonacci 20) (String.concat "," (List.sort compare [ "c"; "a"; "b" ]));
  try raise Not_found with Not_found -> print_endline "caught"
